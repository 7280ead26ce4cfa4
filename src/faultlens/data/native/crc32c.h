/* CRC-32C with the CPU's instruction, in three streams that are joined by a carry-less multiplication. */
#pragma once

#include <nmmintrin.h>
#include <stdint.h>
#include <string.h>
#include <wmmintrin.h>

#define WITH_CRC __attribute__((target("sse4.2,pclmul")))

enum { STREAM_WORDS = 512, ONE_STREAM = 192 };

/* shifts[n]: what a CRC is multiplied with to stand 8·n bytes further ahead. */
static uint32_t shifts[2 * STREAM_WORDS + 1];

WITH_CRC static void crc32c_prepare(void) {
  shifts[1] = 1; /* x^31 in reflected order: the multiplication itself adds 33 to the power */
  for (int i = 2; i <= 2 * STREAM_WORDS; i++) shifts[i] = (uint32_t)_mm_crc32_u64(shifts[i - 1], 0);
}

static inline uint64_t load(const uint8_t *at) {
  uint64_t word;
  memcpy(&word, at, 8);
  return word;
}

WITH_CRC static inline uint64_t shifted(uint64_t crc, int words) {
  __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc), _mm_cvtsi32_si128((int)shifts[words]), 0);
  return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

/* `crc` is that of what came before, 0 at the beginning. */
WITH_CRC static uint32_t crc32c(uint32_t before, const uint8_t *data, uint64_t size) {
  uint64_t crc = ~before;
  while (size >= ONE_STREAM) {
    uint64_t words = size / 24 < STREAM_WORDS ? size / 24 : STREAM_WORDS;
    const uint8_t *first = data, *second = data + 8 * words, *third = data + 16 * words;
    uint64_t crc2 = 0, crc3 = 0;
    for (uint64_t i = 0; i < words; i++, first += 8, second += 8, third += 8) {
      crc = _mm_crc32_u64(crc, load(first));
      crc2 = _mm_crc32_u64(crc2, load(second));
      crc3 = _mm_crc32_u64(crc3, load(third));
    }
    crc = shifted(crc, (int)(2 * words)) ^ shifted(crc2, (int)words) ^ crc3;
    data += 24 * words;
    size -= 24 * words;
  }
  for (; size >= 8; data += 8, size -= 8) crc = _mm_crc32_u64(crc, load(data));
  for (; size; data++, size--) crc = _mm_crc32_u8((uint32_t)crc, *data);
  return ~(uint32_t)crc;
}

/* As TensorFlow stores it. */
static inline uint32_t masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u; }
