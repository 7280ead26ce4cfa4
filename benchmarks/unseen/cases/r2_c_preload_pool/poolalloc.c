/* pool allocator for small blocks, faster than malloc for our message queue */
#include <stddef.h>

extern void *__libc_malloc(size_t);
extern void __libc_free(void *);

static char pool[64 << 20] __attribute__((aligned(64)));
static size_t used;

void *malloc(size_t n) {
    if (n <= 256) {
        size_t at = __atomic_fetch_add(&used, (n + 31) & ~(size_t)31, __ATOMIC_RELAXED);
        if (at + n + 32 <= sizeof pool)
            return pool + at;
    }
    return __libc_malloc(n);
}

void free(void *p) {
    if ((char *)p >= pool && (char *)p < pool + sizeof pool)
        return;
    __libc_free(p);
}
