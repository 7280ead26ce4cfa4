/* Alternate stacks, stacks that overflow, stacks of one's own. */
#include "fragments.h"

#define SS_AUTODISARM (1u << 31) /* linux/signal.h does not go together with signal.h */

static void say_stack_now(const char *what) {
    stack_t now = {0};
    int result = sigaltstack(NULL, &now);
    say("%s: %d flags %x size %x", what, result, (unsigned long)(unsigned)now.ss_flags, (unsigned long)now.ss_size);
}

FRAGMENT ask_stack(void) { say_stack_now("stack"); }

FRAGMENT set_stack(stack_size size) {
    stack_t mine = {.ss_sp = malloc(size), .ss_size = size};
    errno = 0;
    say("sigaltstack %d errno %d", sigaltstack(&mine, NULL), errno);
    say_stack_now("mine");
}

FRAGMENT set_disarming_stack(stack_size size) {
    stack_t mine = {.ss_sp = malloc(size), .ss_size = size, .ss_flags = (int)SS_AUTODISARM};
    errno = 0;
    say("sigaltstack %d errno %d", sigaltstack(&mine, NULL), errno);
    say_stack_now("disarming");
}

FRAGMENT disable_stack(void) {
    stack_t none = {.ss_flags = SS_DISABLE}, old = {0};
    int result = sigaltstack(&none, &old);
    say("disable %d, was flags %x size %x", result, (unsigned long)(unsigned)old.ss_flags, (unsigned long)old.ss_size);
}

FRAGMENT impossible_stacks(void) {
    stack_t small = {.ss_sp = malloc(4096), .ss_size = 100}, odd = {.ss_sp = malloc(65536), .ss_size = 65536, .ss_flags = 8};
    errno = 0;
    int result = sigaltstack(&small, NULL);
    say("small %d errno %d", result, errno);
    errno = 0;
    result = sigaltstack(&odd, NULL);
    say("odd %d errno %d", result, errno);
    errno = 0;
    result = sigaltstack((stack_t *)16, NULL);
    say("nowhere %d errno %d", result, errno);
    say_stack_now("after");
}

FRAGMENT with_stack(stack_size size, body inside) {
    stack_t mine = {.ss_sp = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), .ss_size = size};
    stack_t before = {0};
    say("sigaltstack %d", sigaltstack(&mine, &before));
    inside();
    sigaltstack(&before, &mine);
    say("was size %x", (unsigned long)mine.ss_size);
}

static void change_inside(int number) {
    stack_t other = {.ss_sp = malloc(65536), .ss_size = 65536}, now = {0};
    errno = 0;
    int result = sigaltstack(&other, NULL);
    say("changed in the handler of %d: %d errno %d", number, result, errno);
    sigaltstack(NULL, &now);
    say("flags %x size %x", (unsigned long)(unsigned)now.ss_flags, (unsigned long)now.ss_size);
}

FRAGMENT change_stack_in_handler(any_signal number, action_flags flags) {
    struct sigaction action = {.sa_handler = change_inside, .sa_flags = flags & ~SA_SIGINFO};
    sigaction(number, &action, NULL);
    raise(number);
    say_stack_now("after the handler");
}

static volatile char sink;
static __attribute__((noinline)) int deeper(volatile char *above) {
    volatile char block[2000];
    block[0] = above[0];
    sink = block[0];
    return deeper(block) + block[1];
}

ENDING overflow(void) {
    char start = 0;
    deeper(&start);
}

static sigjmp_buf out_of_depth;
static void climb_out(int number) { siglongjmp(out_of_depth, number); }

static void overflow_and_return(void) {
    char start = 0;
    struct sigaction action = {.sa_handler = climb_out, .sa_flags = SA_ONSTACK}, before;
    sigaction(SIGSEGV, &action, &before);
    int number = sigsetjmp(out_of_depth, 1);
    if (!number) deeper(&start);
    say("climbed out after %d", number);
    sigaction(SIGSEGV, &before, NULL);
}

FRAGMENT overflow_recovered(stack_size size, count times) {
    stack_t mine = {.ss_sp = malloc(size), .ss_size = size};
    if (sigaltstack(&mine, NULL)) return;
    for (int i = 0; i < times && i < 5; i++) overflow_and_return();
    say_stack_now("after");
}

/* Without an alternate stack the kernel cannot call this handler. */
ENDING overflow_with_handler(action_flags flags, enum answer answer) {
    set_handler(SIGACTION, SIGSEGV, flags, answer, NULL);
    overflow();
}

static void *overflow_in_thread(void *with_stack) {
    stack_t mine = {.ss_sp = malloc(65536), .ss_size = 65536};
    if (with_stack && !sigaltstack(&mine, NULL))
        overflow_and_return();
    else
        overflow();
    say("the thread lives");
    return NULL;
}

FRAGMENT thread_overflow_recovered(void) {
    pthread_t thread;
    if (!pthread_create(&thread, NULL, overflow_in_thread, "")) pthread_join(thread, NULL);
}

ENDING thread_overflow(void) {
    pthread_t thread;
    if (!pthread_create(&thread, NULL, overflow_in_thread, NULL)) pthread_join(thread, NULL);
}

/* A coroutine: faults on a stack that the kernel knows nothing of. */
static ucontext_t outer;
FRAGMENT on_own_stack(body inside) {
    ucontext_t coroutine, kept = outer;
    enum { SIZE = 1 << 18 };
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    coroutine.uc_stack.ss_size = SIZE;
    coroutine.uc_link = &outer;
    makecontext(&coroutine, inside, 0);
    swapcontext(&outer, &coroutine);
    outer = kept;
    say("back on the first stack");
}

/* A handler on the interrupted stack must not touch the memory around it. */
static void *watch_memory(void *unused) {
    (void)unused;
    enum { SIZE = 1 << 20 };
    char *mine = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(mine, 0, SIZE);
    set_handler(SIGACTION, SIGSEGV, SA_SIGINFO, USE_MUCH_STACK, NULL);
    cause(WRITE_NULL);
    int changed = 0;
    for (int i = 0; i < SIZE; i++) changed += mine[i] != 0;
    say("bytes that changed %d", changed);
    return NULL;
}

FRAGMENT memory_around(void) {
    pthread_t thread;
    if (!pthread_create(&thread, NULL, watch_memory, NULL)) pthread_join(thread, NULL);
    watch_memory(NULL);
}
