/* Passes over the entropy-coded data of a JPEG at the speed of memory. In them 0xFF is followed by 0, by itself (a
   filler) or by the number of a restart marker; anything else is the marker that ends them. */

#include <stdint.h>

#define PUBLIC __attribute__((visibility("default")))
#ifdef __x86_64__
#define FAST __attribute__((target_clones("avx2", "default")))
#else
#define FAST
#endif

enum { BLOCK = 128, MARKER = 0xFF, RESTART = 0xD0, RESTARTS = 8, LONG = 64 };

struct fl_jpeg_data { /* the same as Found in images/entropy.py */
  uint64_t least;     /* asked for: a run of so many zeros, 0 for none */
  uint64_t zeros, zeros_end;
  uint64_t restarts;
  uint64_t disorder; /* one is not the one that is due */
  uint64_t fill;     /* there is a long run of 0xFF */
};

PUBLIC uint64_t fl_size_of_jpeg_data(void) { return sizeof(struct fl_jpeg_data); }

/* Simple enough for the compiler to make vector instructions of it. */
static inline int has_marker(const uint8_t *data) {
  uint8_t found = 0;
  for (int at = 0; at < BLOCK; at++) found |= (data[at] == MARKER) & (data[at + 1] != 0);
  return found;
}

/* Where the marker begins; `size` if there is none. */
FAST static uint64_t find_end(const uint8_t *data, uint64_t size, uint64_t start, struct fl_jpeg_data *found) {
  uint64_t fill = 0;
  for (uint64_t at = start; at + 1 < size;) {
    uint64_t stop = size - 1 - at < BLOCK ? size - 1 : at + BLOCK;
    if (stop == at + BLOCK && !has_marker(data + at)) {
      at = stop;
      fill = 0;
      continue;
    }
    for (; at < stop; at++) {
      if (data[at] != MARKER) continue;
      uint8_t code = data[at + 1];
      fill = code == MARKER ? fill + 1 : 0;
      if (fill == LONG) found->fill = 1;
      if (code == MARKER || code == 0) continue;
      if (code < RESTART || code >= RESTART + RESTARTS) return at;
      if (code != RESTART + found->restarts % RESTARTS) found->disorder = 1;
      found->restarts++;
    }
  }
  return size;
}

/* A run that is long enough has a zero in any so many bytes: few of them have to be looked at. One that goes on to the
   end is padding. */
static void find_zeros(const uint8_t *data, uint64_t start, uint64_t end, struct fl_jpeg_data *found) {
  for (uint64_t probe = start + found->least - 1; probe < end; probe += found->least) {
    if (data[probe]) continue;
    uint64_t first = probe, behind = probe + 1;
    while (first > start && !data[first - 1]) first--;
    while (behind < end && !data[behind]) behind++;
    if (behind == end) return;
    if (behind - first >= found->least) {
      found->zeros = first;
      found->zeros_end = behind;
      return;
    }
  }
}

PUBLIC uint64_t fl_jpeg_data(const uint8_t *data, uint64_t size, uint64_t start, struct fl_jpeg_data *found) {
  uint64_t end = find_end(data, size, start, found);
  if (found->least) find_zeros(data, start, end, found);
  return end;
}
