/* Feeds damaged Examples, framed with right checksums, to the walk. Each buffer ends where its memory ends. */

#include "records.c"

#include <stdio.h>
#include <stdlib.h>

static uint64_t seed = 88172645463325252ull;

static uint64_t next(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}

int main(int count, char **names) {
  if (!fl_prepare()) return 0;
  struct fl_state *state = calloc(1, sizeof *state);
  uint64_t examples = 0;
  for (int round = 0; round < 60000; round++) {
    FILE *file = fopen(names[1 + round % (count - 1)], "rb");
    static uint8_t data[1 << 16];
    uint64_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    for (uint64_t i = next() % 6; i && size; i--) {
      uint64_t at = next() % size;
      switch (next() % 4) {
        case 0: data[at] ^= 1 << next() % 8; break;
        case 1: data[at] = (uint8_t)next(); break;
        case 2: data[at] = 0xff; break;
        case 3: size = at; break;
      }
    }
    uint8_t *buffer = malloc(size + 16);
    memcpy(buffer, &size, 8);
    uint32_t crc = masked(crc32c(0, buffer, 8));
    memcpy(buffer + 8, &crc, 4);
    memcpy(buffer + 12, data, size);
    crc = masked(crc32c(0, data, size));
    memcpy(buffer + 12 + size, &crc, 4);
    if (round % 100 == 0) memset(state, 0, sizeof *state);
    state->limit = 1ull << 62;
    state->parse = 1;
    state->event_count = state->blob_count = state->cell_count = 0;
    if (fl_walk(buffer, size + 16, 0, state) != size + 16) return 1;
    for (uint32_t i = 0; i < state->blob_count; i++)
      if (state->blobs[i].start + state->blobs[i].size > size + 16) return 2;
    fl_find(buffer, size + 16, 1, 1 << 20);
    if (round % 100 == 99) examples += state->kinds[EXAMPLE].count;
    free(buffer);
  }
  printf("examples %llu of them\n", (unsigned long long)examples);
  free(state);
  return 0;
}
