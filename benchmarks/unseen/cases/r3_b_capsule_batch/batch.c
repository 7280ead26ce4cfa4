#include <stdint.h>
#include <stdlib.h>

typedef struct { int32_t type, id; } device;
typedef struct { uint8_t code, bits; uint16_t lanes; } datatype;
typedef struct {
  void *data;
  device dev;
  int32_t ndim;
  datatype dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} tensor;
typedef struct managed {
  tensor t;
  void *ctx;
  void (*deleter)(struct managed *);
} managed;

static void release(managed *m) {
  free(m->t.data);
  free(m->t.shape);
  free(m);
}

managed *batch_wrap(float *data, int64_t count) {
  managed *m = calloc(1, sizeof *m);
  m->t.data = data;
  m->t.dev.type = 1;
  m->t.ndim = 1;
  m->t.dtype = (datatype){2, 32, 1};
  m->t.shape = malloc(sizeof(int64_t));
  m->t.shape[0] = count;
  m->deleter = release;
  return m;
}

float *batch_new(int64_t count) {
  float *data = aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);
  for (int64_t i = 0; i < count; i++) data[i] = (float)i;
  return data;
}

void batch_free(float *data) { free(data); }
