// A library that does what it is told, and some things that it should not: who is blamed?
#include <pthread.h>
#include <unistd.h>

#include <thread>

extern "C" {

int checksum(const unsigned char *data, int count) {
    int sum = 0;
    for (int i = 0; i < count; i++) sum += data[i];
    return sum;
}

int length(const char *text) {
    int n = 0;
    while (text[n]) n++;
    return n;
}

static void *work(void *memory) {
    usleep(700000);
    for (int i = 0; i < 1000; i++) static_cast<volatile int *>(memory)[i]++;
    return nullptr;
}

void begin(void *memory) {
    pthread_t thread;
    pthread_create(&thread, nullptr, work, memory);
}

void prefetch() {
    std::thread thread([] { usleep(1000); });
}
}
