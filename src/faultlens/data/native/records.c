/* Passes over the whole records of a TFRecord file at the speed of memory; stops where something is wrong, which Python
   then looks at. A record: length (8 bytes), masked CRC of those, data, masked CRC of the data. */

#include "crc32c.h"
#include "records.h"

#include "example.h"

#define PUBLIC __attribute__((visibility("default")))

enum { HEADER = 12, FOOTER = 4 };

PUBLIC int fl_prepare(void) {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("pclmul")) return 0;
  crc32c_prepare();
  return 1;
}

PUBLIC uint64_t fl_size_of_state(void) { return sizeof(struct fl_state); }

PUBLIC uint32_t fl_crc32c(uint32_t before, const uint8_t *data, uint64_t size) { return crc32c(before, data, size); }

static inline uint32_t word(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, 4);
  return value;
}

WITH_CRC static inline uint32_t crc_of_length(const uint8_t *at) {
  return ~(uint32_t)_mm_crc32_u64(0xffffffffu, load(at));
}

/* The first place at or behind `from` with a length whose CRC fits and which is at most `most`; `size` if none. */
PUBLIC uint64_t fl_find(const uint8_t *buffer, uint64_t size, uint64_t from, uint64_t most) {
  for (uint64_t at = from; at + HEADER <= size; at++)
    if (masked(crc_of_length(buffer + at)) == word(buffer + at + 8) && load(buffer + at) <= most) return at;
  return size;
}

/* Walks from the beginning of the buffer, which lies `base` bytes into the file; returns how far it came. */
PUBLIC uint64_t fl_walk(const uint8_t *buffer, uint64_t size, uint64_t base, struct fl_state *state) {
  uint64_t at = 0;
  state->stopped = NEED_MORE;
  while (size - at >= HEADER) {
    if (base + at >= state->limit) {
      state->stopped = AT_LIMIT;
      break;
    }
    if (state->blob_count > BLOBS - 256 || state->cell_count > CELLS - 2 * FEATURES || state->event_count == EVENTS) {
      state->stopped = FULL;
      break;
    }
    if (masked(crc_of_length(buffer + at)) != word(buffer + at + 8)) {
      state->stopped = BAD_LENGTH;
      break;
    }
    uint64_t length = load(buffer + at), left = size - at - HEADER;
    if (left < FOOTER || length > left - FOOTER) break;
    const uint8_t *data = buffer + at + HEADER;
    if (masked(crc32c(0, data, length)) != word(data + length)) {
      state->stopped = BAD_DATA;
      break;
    }
    struct fl_place place = {state->record, base + at, length + HEADER + FOOTER};
    state->sizes[length ? 64 - __builtin_clzll(length) : 0]++;
    if (place.size > state->largest.size) state->largest = place;
    if (state->parse) {
      int kind = read_example(buffer, at + HEADER, place, state);
      add_value(&state->kinds[kind], place);
    }
    state->record++;
    at += place.size;
  }
  return at;
}
