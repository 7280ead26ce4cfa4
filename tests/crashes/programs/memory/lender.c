// Small libraries as people write them, each with one way of losing a pointer.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// A reader that keeps the line which it returns.
typedef struct { char *line; } Reader;
Reader *reader_open(void) { Reader *r = calloc(1, sizeof *r); r->line = malloc(256); return r; }
char *reader_next(Reader *r) { strcpy(r->line, "hello,1,2,3"); return r->line; }
void reader_close(Reader *r) { free(r->line); free(r); }

// A decoder whose next call moves the buffer that the last one returned.
static float *frame; static size_t capacity;
const float *decode_frame(int n) {
  if (n * sizeof(float) > capacity) frame = realloc(frame, capacity = n * sizeof(float));
  for (int i = 0; i < n; i++) frame[i] = i;
  return frame;
}

// A subscription whose callback is never set.
typedef struct { char topic[24]; void (*on_event)(int); void *user; } Subscription;
Subscription *subscribe(const char *topic) {
  void *scratch[16];
  for (int i = 0; i < 16; i++) memset(scratch[i] = malloc(sizeof(Subscription)), 0x41 + i, sizeof(Subscription));
  for (int i = 0; i < 16; i++) free(scratch[i]);
  Subscription *s = malloc(sizeof *s);
  strncpy(s->topic, topic, sizeof s->topic);
  return s;
}
int emit(Subscription *s, int value) { s->on_event(value); return 1; }

// A structure that Python may lay out otherwise.
typedef struct { int64_t size, flags; const unsigned char *pixels; } Image;
long image_sum(const Image *image) {
  long sum = 0;
  for (int64_t i = 0; i < (image->size & 0xffff); i++) sum += image->pixels[i];
  return sum;
}

// A list that is walked while it is freed.
typedef struct Node { struct Node *next; long key; double value; } Node;
typedef struct { Node *head; } Cache;
Cache *cache_new(void) { return calloc(1, sizeof(Cache)); }
void cache_put(Cache *c, long key, double value) {
  Node *n = malloc(sizeof *n);
  n->next = c->head; n->key = key; n->value = value; c->head = n;
}
void cache_evict(Cache *c, long parity) { for (Node *n = c->head; n; n = n->next) if (n->key % 2 == parity) free(n); }

// Members that run over the pointer behind them: text, and numbers.
typedef struct { char name[16]; float *weights; } Layer;
Layer *layer_new(int n) { Layer *l = malloc(sizeof *l); l->weights = calloc(n, 4); return l; }
void layer_rename(Layer *l, const char *name) { strcpy(l->name, name); }
float layer_norm(Layer *l) { float s = 0; for (int i = 0; i < 4; i++) s += l->weights[i] * l->weights[i]; return s; }
typedef struct { float taps[8]; float *history; } Filter;
Filter *filter_new(void) { Filter *f = calloc(1, sizeof *f); f->history = calloc(64, 4); return f; }
void filter_taps(Filter *f, const float *taps, int n) { for (int i = 0; i < n; i++) f->taps[i] = taps[i]; }
float filter_step(Filter *f, float x) { float y = 0; for (int i = 0; i < 8; i++) y += f->taps[i] * f->history[i]; return y + x; }

// A table that was never filled.
typedef struct { long rows; double *values; } Table;
Table *table_new(long rows) { Table *t = calloc(1, sizeof *t); t->rows = rows; return t; }
double table_get(Table *t, long row, long col) { return t->values[row * 100 + col]; }

// A text that the caller is to free, and one that is kept.
char *describe(int n) { char *s = malloc(5000); memset(s, 'x', 4000); s[4000] = 0; return s; }
typedef struct { const char *key; long value; } Entry;
static const Entry *entries; static int bound;
void kv_bind(const Entry *e, int n) { entries = e; bound = n; }
long kv_find(const char *key) {
  for (int i = 0; i < bound; i++) if (!strcmp(entries[i].key, key)) return entries[i].value;
  return -1;
}

// A row that is filled too far: found when malloc looks at its notes.
float *pad_new(int n) { return malloc(n * sizeof(float)); }
void pad_fill(float *row, int n) { for (int i = 0; i <= n + 8; i++) row[i] = 0; }
