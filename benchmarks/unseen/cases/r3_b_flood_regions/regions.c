#include <stdint.h>

static int fill(const uint8_t *mask, int32_t *labels, int h, int w, int y, int x, int32_t label) {
  if (y < 0 || x < 0 || y >= h || x >= w) return 0;
  int at = y * w + x;
  if (!mask[at] || labels[at]) return 0;
  labels[at] = label;
  int size = 1;
  size += fill(mask, labels, h, w, y, x + 1, label);
  size += fill(mask, labels, h, w, y + 1, x, label);
  size += fill(mask, labels, h, w, y, x - 1, label);
  size += fill(mask, labels, h, w, y - 1, x, label);
  return size;
}

int32_t label_regions(const uint8_t *mask, int32_t *labels, int h, int w, int *largest) {
  int32_t label = 0;
  *largest = 0;
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++)
      if (mask[y * w + x] && !labels[y * w + x]) {
        int size = fill(mask, labels, h, w, y, x, ++label);
        if (size > *largest) *largest = size;
      }
  return label;
}
