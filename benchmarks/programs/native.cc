// Native work for the benchmarks: loops without Python in between, and a death that can be timed.
#include <fcntl.h>
#include <stdexcept>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <dlfcn.h>

static double now(clockid_t clock) {
    timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static __attribute__((noinline)) int fall(int depth) {
    if (depth == 0) throw std::runtime_error("benchmark");
    return fall(depth - 1) + 1;
}

// Seconds for `count` exceptions, thrown `depth` calls below where they are caught.
extern "C" double throw_and_catch(int count, int depth) {
    double start = now(CLOCK_MONOTONIC);
    for (int i = 0; i < count; i++) {
        try {
            fall(depth);
        } catch (const std::exception &) {
        }
    }
    return now(CLOCK_MONOTONIC) - start;
}

// Seconds for `count` writes of `size` bytes to standard output.
extern "C" double write_blocks(int count, int size) {
    char *block = static_cast<char *>(malloc(size));
    memset(block, 'x', size);
    double start = now(CLOCK_MONOTONIC);
    for (int i = 0; i < count; i++)
        for (int done = 0; done < size;) {
            ssize_t written = write(STDOUT_FILENO, block + done, size - done);
            if (written < 0) return -1;
            done += written;
        }
    double seconds = now(CLOCK_MONOTONIC) - start;
    free(block);
    return seconds;
}

// Preloaded, this notes when the program aborts, and holds it there when asked to.
extern "C" void abort(void) {
    if (const char *path = getenv("BENCHMARK_STAMP")) {
        char text[64];
        int size = snprintf(text, sizeof text, "%.6f %d", now(CLOCK_REALTIME), getpid());
        int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (write(file, text, size) != size) _exit(3);
        close(file);
        while (getenv("BENCHMARK_HOLD")) pause();
    }
    reinterpret_cast<void (*)()>(dlsym(RTLD_NEXT, "abort"))();
    __builtin_unreachable();
}
