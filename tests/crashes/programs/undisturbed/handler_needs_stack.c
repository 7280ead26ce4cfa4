/* A handler that did not ask for an alternate stack and needs a lot: on the thread's stack there is room, and the
 * memory that the program mapped meanwhile stays as it is. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SIZE = 1 << 20 };
static sigjmp_buf before;
static int need;
static volatile char sink;

static __attribute__((noinline)) void use(int bytes) {
    char block[4096];
    memset(block, 'A', sizeof block);
    sink = block[bytes % 4096];
    if (bytes > 4096) use(bytes - 4096);
    sink = block[1];
}

static void handle(int number) {
    use(need);
    siglongjmp(before, number);
}

static void *work(void *unused) {
    char *mine = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int changed = 0;
    memset(mine, 0, SIZE);
    if (!sigsetjmp(before, 1)) *(volatile int *)8 = 1;
    for (int i = 0; i < SIZE; i++) changed += mine[i] != 0;
    printf("recovered, bytes changed: %d\n", changed);
    return unused;
}

int main(int count, char **words) {
    struct sigaction action = {.sa_handler = handle};
    pthread_t thread;
    need = count > 1 ? atoi(words[1]) : 100000;
    sigaction(SIGSEGV, &action, NULL);
    work(NULL);
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    return 0;
}
