/* Ends of every kind. */
#include "fragments.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <sys/resource.h>

ENDING end_by_exit(status code) { exit(code); }
ENDING end_by_underscore_exit(status code) { _exit(code); }
ENDING end_by_quick_exit(status code) { quick_exit(code); }
ENDING end_by_raw_exit(status code) { syscall(SYS_exit_group, code); }

ENDING end_by_signal(enum sender sender, any_signal number) {
    signal(number, SIG_DFL);
    send_signal(sender, number);
    milliseconds(20);
    say("survived %d", number);
}

ENDING end_by_fault(enum fault fault) {
    signal(fault_number(fault), SIG_DFL);
    cause(fault);
}

ENDING end_by_kill(void) { kill(getpid(), SIGKILL); }
ENDING end_by_abort(void) { abort(); }

static void return_from_abort(int number) { say("abort: handler of %d", number); }
ENDING abort_with_handler(void) {
    signal(SIGABRT, return_from_abort);
    abort();
}
ENDING abort_blocked(void) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    signal(SIGABRT, SIG_IGN);
    abort();
}
static sigjmp_buf beyond;
static void leave_abort(int number) { siglongjmp(beyond, number); }
FRAGMENT abort_left_by_jump(void) {
    signal(SIGABRT, leave_abort);
    if (!sigsetjmp(beyond, 1)) abort();
    say("left abort");
    signal(SIGABRT, SIG_DFL);
}

ENDING failed_assertion(void) { assert(getpid() < 0); }

/* A small block: of larger ones it depends on their neighbours what the C library says. */
ENDING free_twice(void) {
    void *volatile block = malloc(24);
    free(block);
    free(block);
}

ENDING smashed_stack(void) {
    volatile char block[16];
    for (volatile int i = 0; i < 64; i++) block[i] = 'A';
    say("smashed %d", block[3]);
}

/* ------------------------------------------------------------------------------------- at the exit */

static enum fault last_fault;
static void say_at_exit(void) { say("at exit"); }
static void crash_at_exit(void) { cause(last_fault); }
static void leave_at_exit(void) { _exit(33); }

FRAGMENT at_exit(void) {
    atexit(say_at_exit);
    at_quick_exit(say_at_exit);
}
FRAGMENT at_exit_crash(enum fault fault) {
    last_fault = fault;
    atexit(crash_at_exit);
}
FRAGMENT at_exit_leave(void) { atexit(leave_at_exit); }

static void say_for_key(void *value) { say("thread's value %s", (const char *)value); }
static void crash_for_key(void *value) {
    (void)value;
    cause(last_fault);
}
static void *set_value(void *key) {
    pthread_setspecific((pthread_key_t)(long)key, "here");
    return NULL;
}
FRAGMENT at_thread_exit(void) {
    pthread_key_t key;
    pthread_t thread;
    pthread_key_create(&key, say_for_key);
    pthread_create(&thread, NULL, set_value, (void *)(long)key);
    pthread_join(thread, NULL);
}
FRAGMENT at_thread_exit_crash(enum fault fault) {
    pthread_key_t key;
    pthread_t thread;
    last_fault = fault;
    pthread_key_create(&key, crash_for_key);
    pthread_create(&thread, NULL, set_value, (void *)(long)key);
    pthread_join(thread, NULL);
}

/* ------------------------------------------------------------------------------ states to die in */

/* The thread's own memory is gone: nothing that uses it works. */
ENDING die_without_thread_memory(enum fault fault) {
    signal(fault_number(fault), SIG_DFL);
    switch (fault) {
        case ILLEGAL:
        case DIVIDE:
        case WRITE_NULL: break;
        default: fault = BREAKPOINT; signal(SIGTRAP, SIG_DFL);
    }
    long code = fault;
    __asm__ volatile(
        "mov $158, %%eax\nmov $0x1002, %%edi\nxor %%esi, %%esi\nsyscall\n" /* arch_prctl(ARCH_SET_FS, 0) */
        "cmp %1, %0\nje 3f\ncmp %2, %0\nje 4f\ncmp %3, %0\nje 5f\nint3\nhlt\n"
        "3: ud2\n4: xor %%ecx, %%ecx\nidivl %%ecx\n5: movl $1, 8\n" ::"r"(code),
        "i"(ILLEGAL), "i"(DIVIDE), "i"(WRITE_NULL)
        : "rax", "rcx", "rdx", "rdi", "rsi", "r11", "memory");
}

/* Unaligned access is a fault from now on, in handlers too. */
ENDING die_with_alignment_check(enum fault fault) {
    signal(fault_number(fault), SIG_DFL);
    signal(SIGILL, SIG_DFL);
    __asm__ volatile("pushf\norl $0x40000, (%%rsp)\npopf" ::: "cc", "memory");
    if (fault == DIVIDE) __asm__ volatile("xor %%ecx, %%ecx\nidivl %%ecx" ::: "ecx", "cc");
    if (fault == WRITE_NULL) __asm__ volatile("movl $1, 8" ::: "memory");
    __asm__ volatile("ud2");
}

static body handlers_body;
static void die_inside(int number) {
    say("dying in the handler of %d", number);
    handlers_body();
    _exit(44);
}
ENDING die_in_handler(any_signal number, body inside) {
    handlers_body = inside;
    signal(number, die_inside);
    raise(number);
}

ENDING file_too_large(void) {
    struct rlimit limit = {10, 10};
    int file = memfd_create("large", 0);
    signal(SIGXFSZ, SIG_DFL);
    setrlimit(RLIMIT_FSIZE, &limit);
    if (write(file, "more than ten bytes", 19) < 0 || write(file, "more than ten bytes", 19) < 0) say("refused");
    say("survived");
}

RARE too_much_cpu(void) {
    struct rlimit limit = {1, 2};
    signal(SIGXCPU, SIG_DFL);
    setrlimit(RLIMIT_CPU, &limit);
    for (;;) {
    }
}

ENDING broken_pipe(void) {
    int ends[2];
    signal(SIGPIPE, SIG_DFL);
    if (pipe(ends)) return;
    close(ends[0]);
    if (write(ends[1], "x", 1) < 0) say("refused");
}

FRAGMENT load_and_unload(count times) {
    for (int i = 0; i < times && i < 20; i++) {
        void *library = dlopen("libanl.so.1", RTLD_NOW);
        if (library) dlclose(library);
    }
    say("loaded and unloaded");
}

/* A second C library, whose sigaction nobody has replaced. */
FRAGMENT second_library(any_signal number) {
    void *library = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
    if (!library) return;
    sighandler_t (*their_signal)(int, sighandler_t) = (sighandler_t(*)(int, sighandler_t))dlsym(library, "signal");
    their_signal(number, SIG_IGN);
    raise(number);
    say("ignored by the second library");
    their_signal(number, SIG_DFL);
}
