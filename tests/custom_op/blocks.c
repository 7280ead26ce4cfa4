/* Misuse of heap memory that nobody notices, one function each. */
#include <stdlib.h>

#define APART __attribute__((noinline))

APART char *make_block(size_t size) { return malloc(size); }
APART void drop_block(char *block) { free(block); }
APART void put(volatile char *block, long place) { block[place] = 1; }
APART char get(volatile char *block, long place) { return block[place]; }

void write_behind(size_t size) {
    char *block = make_block(size);
    put(block, (long)size + 8);
    drop_block(block);
}

void write_before(size_t size) {
    char *block = make_block(size);
    put(block, -1);
    drop_block(block);
}

char read_behind(size_t size) {
    char *block = make_block(size), found = get(block, (long)size);
    drop_block(block);
    return found;
}

void use_freed(size_t size) {
    char *block = make_block(size);
    drop_block(block);
    put(block, 3);
}

void free_twice(size_t size) {
    char *block = make_block(size);
    drop_block(block);
    drop_block(block);
}

void free_inside(size_t size) { drop_block(make_block(size) + 16); }

void write_and_keep(size_t size) { put(make_block(size), (long)size); }

void behave(size_t size) {
    char *block = make_block(size);
    put(block, (long)size - 1);
    drop_block(block);
}
