/* Starts threads, says how much of a thread's stack is gone before its function begins, and waits. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static size_t of_thread;
static pthread_barrier_t all_here;

static size_t used_stack(void) {
    pthread_attr_t attributes;
    void *low;
    size_t size;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    return (uintptr_t)low + size - (uintptr_t)__builtin_frame_address(0);
}

static void *work(void *unused) {
    of_thread = used_stack();
    pthread_barrier_wait(&all_here);
    pause();
    return unused;
}

int main(int count, char **words) {
    int threads = count > 1 ? atoi(words[1]) : 0;
    pthread_barrier_init(&all_here, NULL, 2);
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL)) abort();
        pthread_barrier_wait(&all_here);
    }
    printf("ready %d %zu\n", getpid(), of_thread);
    fflush(stdout);
    getchar();
    _exit(0);
}
