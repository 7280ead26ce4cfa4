/* abort() calls a handler of SIGABRT first, and ends the process when that returns. */
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sigjmp_buf again;
static volatile int handled, returns, frames;

static void on_abort(int number) {
    void *found[64];
    (void)number;
    handled++;
    frames = backtrace(found, 64);
    if (!returns) siglongjmp(again, 1);
}

static void *end_soon(void *unused) { /* what the handler tells another thread to do, as Python's does */
    while (!handled) usleep(100);
    usleep(20000);
    _exit(7);
    return unused;
}

static __attribute__((noinline)) void call_deeper(int depth, void (*act)(void)) {
    volatile char room[40];
    memset((void *)room, depth, sizeof room);
    if (depth) call_deeper(depth - 1, act);
    else act();
    room[0] = 0;
}

static void raise_it(void) { raise(SIGABRT); }
static void kill_it(void) { kill(getpid(), SIGABRT); }

static volatile long counted;

static void *count(void *unused) {
    for (;;) counted++;
    return unused;
}

/* As if abort() had called it. */
static __attribute__((noinline)) void raise_beside_abort(void) {
    void *volatile left[4] = {(char *)abort + 32, (char *)abort + 32, (char *)abort + 32, (char *)abort + 32};
    raise(SIGABRT);
    left[0] = NULL;
}

int main(int words_count, char **words) {
    signal(SIGABRT, on_abort);
    pthread_t thread;
    if (words_count > 1 && !strcmp(words[1], "recovers")) {
        for (volatile int i = 0; i < 300; i++) {
            returns = 0;
            if (!sigsetjmp(again, 1)) call_deeper(i % 30, abort);
            returns = 1; /* and the stack is full of what abort() left behind */
            call_deeper((i * 7) % 30, raise_it);
            call_deeper((i * 11) % 30, kill_it);
        }
        pthread_create(&thread, NULL, count, NULL);
        while (!counted) usleep(100);
        raise_beside_abort();
        if (setgid(getgid())) return 1; /* the C library tells all threads */
        for (long before = counted; counted == before;) usleep(100);
        printf("%d\n", handled);
        return 0;
    }
    returns = 1;
    pthread_create(&thread, NULL, end_soon, NULL);
    call_deeper(5, abort);
}
