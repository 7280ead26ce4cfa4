#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  int count;
  float *weights;
  char (*words)[32];
} lexicon;

lexicon *lexicon_open(const char *path) {
  FILE *f = fopen(path, "r");
  if (!f) return NULL;
  lexicon *lex = calloc(1, sizeof *lex);
  lex->weights = malloc(10000 * sizeof *lex->weights);
  lex->words = malloc(10000 * sizeof *lex->words);
  while (lex->count < 10000 && fscanf(f, "%31s %f", lex->words[lex->count], &lex->weights[lex->count]) == 2) lex->count++;
  fclose(f);
  return lex;
}

float lexicon_score(const lexicon *lex, const char *word) {
  for (int i = 0; i < lex->count; i++)
    if (!strcmp(lex->words[i], word)) return lex->weights[i];
  return 0;
}
