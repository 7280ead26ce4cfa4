// A handler that throws, and the exception that nobody catches: throws {caught,uncaught}. -fnon-call-exceptions
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <stdexcept>

static void handle(int number) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    sigprocmask(SIG_UNBLOCK, &one, nullptr);
    throw std::runtime_error("out of the handler");
}

static __attribute__((noinline)) int read_from(volatile int *address) { return *address; }

int main(int count, char **words) {
    setvbuf(stdout, nullptr, _IONBF, 0);
    signal(SIGSEGV, handle);
    for (int i = 0; i < 3; i++) {
        try {
            printf("%d\n", read_from(reinterpret_cast<volatile int *>(8)));
        } catch (const std::exception &error) {
            printf("caught: %s\n", error.what());
        }
    }
    if (count > 1 && !strcmp(words[1], "uncaught")) throw std::logic_error("of nobody");
    return 3;
}
