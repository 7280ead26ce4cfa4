/* What a handler may change, and what must be as it was when it returns. */
#include "fragments.h"

#include <immintrin.h>

static action_flags flags_with_context(action_flags flags) { return flags | SA_SIGINFO; }

/* Everything the kernel keeps for an interrupted program: vectors, the old floating point stack, rounding. */
__attribute__((target("avx"))) static void check_vectors(void) {
    unsigned char pattern[32], seen[32];
    unsigned rounding = (_mm_getcsr() & ~0x6000u) | 0x4000u, kept = _mm_getcsr(), after;
    double seven = 7, top = 0;
    memset(pattern, 0x5a, sizeof pattern);
    _mm_setcsr(rounding);
    __asm__ volatile(
        "vmovdqu (%3), %%ymm12\nfldl %5\nlea 2f(%%rip), %%rax\nmov %%rax, %0\nmov %%rsp, %1\n"
        "ud2\n2: vmovdqu %%ymm12, (%4)\nfstpl %2\nstmxcsr %6\nvzeroupper"
        : "=m"(resume_at), "=m"(resume_stack), "=m"(top)
        : "r"(pattern), "r"(seen), "m"(seven), "m"(after)
        : "rax", "xmm12", "memory");
    _mm_setcsr(kept);
    say("vector %d top %d rounding %d", memcmp(pattern, seen, 32) == 0, (int)top, (after & 0x6000) == 0x4000);
}

FRAGMENT vector_state(action_flags flags) {
    if (!__builtin_cpu_supports("avx")) return;
    set_handler(SIGACTION, SIGILL, flags_with_context(flags), REPAIR, NULL);
    check_vectors();
}

/* The 128 bytes below the stack pointer are the program's, also while a handler runs. */
FRAGMENT red_zone(action_flags flags) {
    long low = 0, high = 0;
    set_handler(SIGACTION, SIGILL, flags_with_context(flags), REPAIR, NULL);
    __asm__ volatile(
        "movq $0x1111, -128(%%rsp)\nmovq $0x2222, -8(%%rsp)\nlea 2f(%%rip), %%rax\nmov %%rax, %0\nmov %%rsp, %1\n"
        "ud2\n2: movq -128(%%rsp), %2\nmovq -8(%%rsp), %3"
        : "=m"(resume_at), "=m"(resume_stack), "=r"(low), "=r"(high)
        :
        : "rax", "memory");
    say("red zone %x %x", (unsigned long)low, (unsigned long)high);
}

static void change_registers(int number, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)number, (void)info;
    registers[REG_RIP] += 2; /* of ud2 */
    registers[REG_RBX] = 0x1234;
    registers[REG_R12] += 1;
}
FRAGMENT changed_registers(action_flags flags) {
    struct sigaction action = {.sa_sigaction = change_registers, .sa_flags = flags_with_context(flags)};
    long b = 0, r12 = 41;
    sigaction(SIGILL, &action, NULL);
    __asm__ volatile("mov %1, %%r12\nud2\nmov %%rbx, %0\nmov %%r12, %1" : "=r"(b), "+r"(r12)::"rbx", "r12", "memory");
    say("changed registers %x %d", (unsigned long)b, (int)r12);
}

/* The mask and the alternate stack in the context are what the program has after the handler. */
static char changed_stack[1 << 16];
static void change_state(int number, siginfo_t *info, void *context) {
    ucontext_t *interrupted = context;
    (void)number;
    sigaddset(&interrupted->uc_sigmask, SIGWINCH);
    interrupted->uc_stack = (stack_t){.ss_sp = changed_stack, .ss_size = sizeof changed_stack};
    if (info->si_code > 0) mend(context);
}
FRAGMENT changed_state(enum fault fault, action_flags flags) {
    struct sigaction action = {.sa_sigaction = change_state, .sa_flags = flags_with_context(flags)};
    stack_t now = {0};
    sigaction(fault_number(fault), &action, NULL);
    cause(fault);
    sigaltstack(NULL, &now);
    say("stack after: flags %d size %x", now.ss_flags, (unsigned long)now.ss_size);
}
FRAGMENT changed_state_by_signal(enum sender sender, any_signal number, action_flags flags) {
    struct sigaction action = {.sa_sigaction = change_state, .sa_flags = flags_with_context(flags)};
    stack_t now = {0};
    sigaction(number, &action, NULL);
    send_signal(sender, number);
    say_mask("after");
    sigaltstack(NULL, &now);
    say("stack after: flags %d size %x", now.ss_flags, (unsigned long)now.ss_size);
}

/* A scheduler of its own: the handler switches to another context, and comes back when that is done. */
static ucontext_t scheduled, suspended;
static body scheduled_body;
static void run_scheduled(void) {
    say("scheduled");
    scheduled_body();
    say("giving back");
}
static void switch_away(int number, siginfo_t *info, void *context) {
    (void)info;
    say("switching in the handler of %d", number);
    swapcontext(&suspended, &scheduled);
    say("switched back");
    mend(context);
}
FRAGMENT switch_in_handler(enum fault fault, action_flags flags, body inside) {
    enum { SIZE = 1 << 18 };
    struct sigaction action = {.sa_sigaction = switch_away, .sa_flags = flags_with_context(flags)};
    scheduled_body = inside;
    getcontext(&scheduled);
    scheduled.uc_stack.ss_sp = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    scheduled.uc_stack.ss_size = SIZE;
    scheduled.uc_link = &suspended;
    makecontext(&scheduled, run_scheduled, 0);
    sigaction(fault_number(fault), &action, NULL);
    cause(fault);
}

/* The handler never returns: its frame is left for a context that was saved before. */
FRAGMENT leave_by_setcontext(enum fault fault, action_flags flags) {
    static volatile int left;
    ucontext_t before;
    left = 0;
    getcontext(&before);
    if (left++) {
        say("left");
        say_mask("left");
        return;
    }
    suspended = before;
    extern void leave_for_suspended(int);
    struct sigaction action = {.sa_handler = leave_for_suspended, .sa_flags = flags & ~SA_SIGINFO};
    sigaction(fault_number(fault), &action, NULL);
    cause(fault);
}
void leave_for_suspended(int number) {
    (void)number;
    setcontext(&suspended);
}
