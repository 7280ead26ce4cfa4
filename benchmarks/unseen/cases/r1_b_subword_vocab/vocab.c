#include <stdlib.h>
#include <string.h>

struct vocab {
  size_t count, capacity;
  char **words;
};

struct vocab *vocab_new(size_t capacity) {
  struct vocab *v = malloc(sizeof *v);
  v->count = 0;
  v->capacity = capacity;
  v->words = calloc(capacity, sizeof *v->words);
  return v;
}

int vocab_add(struct vocab *v, const char *word) {
  if (v->count == v->capacity) return -1;
  v->words[v->count] = strdup(word);
  return (int)v->count++;
}

int vocab_find(const struct vocab *v, const char *word) {
  for (size_t i = 0; i < v->count; i++)
    if (strcmp(v->words[i], word) == 0) return (int)i;
  return -1;
}
