// Native work for the benchmarks: loops without Python in between.
#include <stdexcept>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static __attribute__((noinline)) int fall(int depth) {
    if (depth == 0) throw std::runtime_error("benchmark");
    return fall(depth - 1) + 1;
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
