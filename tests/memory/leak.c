/* A C extension that forgets what it allocates. */
#include <stdlib.h>
#include <string.h>

void leak(size_t size) {
    void *forgotten = malloc(size);
    if (forgotten) memset(forgotten, 1, size);
}
