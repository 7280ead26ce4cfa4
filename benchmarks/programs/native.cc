// Native work for the benchmarks: loops without Python in between.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <stdexcept>
#include <vector>

static double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static __attribute__((noinline)) int fall(int depth) {
    if (depth == 0) throw std::runtime_error("benchmark");
    int deeper = fall(depth - 1);
    __asm__ volatile("" : "+r"(deeper));  // keeps it a call, or the compiler makes a loop of it
    return deeper;
}

// Seconds for `count` exceptions, thrown `depth` calls below where they are caught.
extern "C" double throw_and_catch(int count, int depth) {
    double start = now();
    for (int i = 0; i < count; i++) {
        try {
            fall(depth);
        } catch (const std::exception &) {
        }
    }
    return now() - start;
}

// Seconds for `count` writes of `size` bytes to standard output.
extern "C" double write_blocks(int count, int size) {
    char *block = static_cast<char *>(malloc(size));
    memset(block, 'x', size);
    double start = now();
    for (int i = 0; i < count; i++)
        for (int done = 0; done < size;) {
            ssize_t written = write(STDOUT_FILENO, block + done, size - done);
            if (written < 0) return -1;
            done += written;
        }
    double seconds = now() - start;
    free(block);
    return seconds;
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *pass_gate(void *) {
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return nullptr;
}

// Seconds to start and join `count` threads that live at the same time.
extern "C" double start_threads(int count) {
    std::vector<pthread_t> threads(count);
    double start = now();
    pthread_mutex_lock(&gate);
    for (pthread_t &thread : threads)
        if (pthread_create(&thread, nullptr, pass_gate, nullptr)) return -1;
    pthread_mutex_unlock(&gate);
    for (pthread_t thread : threads) pthread_join(thread, nullptr);
    return now() - start;
}
