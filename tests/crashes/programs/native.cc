// Ways to die in native code, one exported function each; compiled by the tests and called through ctypes.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <new>
#include <stdexcept>
#include <thread>

#define EXPORT extern "C" __attribute__((visibility("default"), noinline))

EXPORT int read_null() { return *(volatile int *)nullptr; }
EXPORT int read_wild() { return *(volatile int *)0x12345678000; }
EXPORT void read_non_canonical() { (void)*(volatile int *)0xdead000000000000ull; }
EXPORT void write_to(long address) { *(volatile int *)address = 7; }
EXPORT void call_null() { ((void (*)())nullptr)(); }

EXPORT void write_read_only() {
    void *page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *(volatile int *)page = 1;
}

EXPORT int divide(int a, int b) { return a / b; }
EXPORT void trap() { __builtin_trap(); }
EXPORT int breakpoint() { __asm__ volatile("int3"); return 7; }

EXPORT void free_twice() {
    void *volatile block = malloc(2000);
    void *volatile behind = malloc(2000);
    free(block);
    free(block);
    free(behind);
}

EXPORT void throw_error(const char *text) { throw std::runtime_error(text); }

class CustomError : public std::out_of_range {
   public:
    CustomError() : std::out_of_range("index 9 of 3") {}
};
EXPORT void throw_custom() { throw CustomError(); }
EXPORT void throw_bad_alloc() { throw std::bad_alloc(); }

EXPORT void throw_and_catch(const char *text) {
    try {
        throw std::invalid_argument(text);
    } catch (const std::exception &) {
    }
}

EXPORT void throw_in_thread(const char *text) {
    std::thread([text] { throw std::runtime_error(text); }).join();
}

EXPORT __attribute__((optimize("O0"))) long recurse(long depth) {
    volatile char room[4096];
    room[0] = (char)depth;
    return recurse(depth + 1) + room[0];
}

static void *recurse_entry(void *) { return (void *)recurse(0); }
EXPORT void recurse_in_thread() {
    pthread_t thread;
    pthread_create(&thread, nullptr, recurse_entry, nullptr);
    pthread_join(thread, nullptr);
}

static std::atomic<int> ready;
static void crash_together() {
    ready++;
    while (ready < 2) {
    }
    read_null();
}
EXPORT void two_threads_crash() {
    std::thread other(crash_together);
    crash_together();
    other.join();
}

static sigjmp_buf back;
static void jump_back(int) { siglongjmp(back, 1); }
EXPORT int recover_from_segv(int times) {
    struct sigaction action = {}, before;
    action.sa_handler = jump_back;
    sigaction(SIGSEGV, &action, &before);
    volatile int recovered = 0;
    for (volatile int i = 0; i < times; i++)
        if (sigsetjmp(back, 1) == 0)
            read_null();
        else
            recovered++;
    sigaction(SIGSEGV, &before, nullptr);
    return recovered;
}

static void say_and_leave(int) {
    if (write(2, "my own handler\n", 15)) {}
    _exit(3);
}
EXPORT void crash_with_handler_that_exits() {
    signal(SIGSEGV, say_and_leave);
    read_null();
}

static volatile int faults_to_mend;
static void *mended_page;
static void mend(int, siginfo_t *, void *) { mprotect(mended_page, 4096, PROT_READ | PROT_WRITE); faults_to_mend++; }
EXPORT int mend_read_only_page() {
    mended_page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {};
    action.sa_sigaction = mend;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    *(volatile int *)mended_page = 42;
    return *(volatile int *)mended_page + faults_to_mend;
}

EXPORT void die_in_sigsuspend() {
    sigset_t blocked, none;
    sigfillset(&blocked);
    sigprocmask(SIG_SETMASK, &blocked, nullptr);
    kill(getpid(), SIGILL);
    sigemptyset(&none);
    sigsuspend(&none);
    _exit(5);
}

EXPORT void abort_with_check() {
    if (write(2, "F0000 00:00:00 shape.cc:12] Check failed: rank == 2 (3 vs. 2)\n", 62)) {}
    abort();
}

static pthread_mutex_t taken_before_the_gil = PTHREAD_MUTEX_INITIALIZER;
EXPORT void lock_and_call(void (*function)()) {
    pthread_mutex_lock(&taken_before_the_gil);
    usleep(300000);
    function();
}
EXPORT void lock_mutex() { pthread_mutex_lock(&taken_before_the_gil); }
