#include <stdint.h>

void histogram(const uint8_t *pixels, int64_t count, int64_t *bins) {
  for (int64_t i = 0; i < count; i++) bins[pixels[i]]++;
}
