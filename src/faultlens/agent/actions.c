/* What the program wants of fatal signals, and how its handlers are run.
 *
 * The kernel calls us first, and the kernel remembers for us what the program wants: one of our entries stands where
 * the handler would, the program's handler (or SIG_DFL) where the C library's restorer would. So there is no memory of
 * ours to get mixed up: threads, fork, vfork, clone and exec see what they would see without us, at any instant. The
 * kernel pushes the restorer as the return address of the handler; our entry takes the handler from there and puts the
 * true restorer in its place.
 *
 * Our entries always run on the alternate stack, or a stack overflow could not be told. A handler of the program's gets
 * the stack that it would have had: the frame that the kernel made is moved there, byte for byte.
 */
#define _GNU_SOURCE
#include "parts.h"

#include <asm/prctl.h>

void *restorer;

/* Flags of the program's that ours differ from; which entry the kernel calls tells them. */
enum own_flags { OWN_SIGINFO = 1, OWN_ONSTACK = 2, OWN_RESTORER = 4, OWN_RESETHAND = 8, OWN_COUNT = 16 };

#define ENTRY_SIZE 16
extern char fl_entries[OWN_COUNT * ENTRY_SIZE] __attribute__((visibility("hidden")));

/* struct rt_sigframe of the kernel: the return address, struct ucontext, siginfo; above it the vector registers */
#define FRAME_CONTEXT 8
#define FRAME_INFO 312
#define FRAME_SIZE 440
#define RED_ZONE 128

/* At an entry the stack pointer is the frame. The registers are those that were interrupted, and all that a called
 * function keeps must be the same when the handler begins. So may be the check for alignment (AC in the flags), which
 * our code would not pass. */
__asm__(
    ".text\n"
    ".balign 16\n"
    ".hidden fl_entries\n"
    ".globl fl_entries\n"
    ".type fl_entries, @function\n"
    "fl_entries:\n"
    ".set own, 0\n"
    ".rept 16\n"
    ".balign 16\n"
    "movl $own, %ecx\n"
    "jmp 1f\n"
    ".set own, own + 1\n"
    ".endr\n"
    ".balign 16\n"
    "1:\n"
    ".cfi_startproc\n"
    "pushq %rbx\n"
    ".cfi_adjust_cfa_offset 8\n"
    ".cfi_rel_offset %rbx, 0\n"
    "movq %rsp, %rbx\n"
    ".cfi_def_cfa_register %rbx\n"
    "pushq %rdi\n"
    "pushfq\n"
    "pushq (%rsp)\n"
    "andq $~0x40000, (%rsp)\n"
    "popfq\n"
    "leaq 8(%rbx), %r8\n"
    "andq $-16, %rsp\n" /* emulators enter handlers with the stack misaligned */
    "call fl_enter\n"
    "movl -8(%rbx), %edi\n"
    "testq %rax, %rax\n"
    "je 2f\n"
    "leaq -16(%rbx), %rsp\n"
    "popfq\n"
    "movq %rax, %r11\n"
    "movq (%rbx), %rbx\n"
    "movq %rdx, %rsp\n"
    "leaq 312(%rsp), %rsi\n"
    "leaq 8(%rsp), %rdx\n"
    "movl $0, %eax\n"
    "jmp *%r11\n"
    "2:\n"
    "movq %rbx, %rsp\n"
    "popq %rbx\n"
    ".cfi_def_cfa %rsp, 8\n"
    "ret\n"
    ".cfi_endproc\n"
    ".size fl_entries, . - fl_entries\n");

/* Where a handler returns to that abort() has called: as the C library's restorer, but it comes by us before. Whoever
 * unwinds the stack in the handler reads where the registers lie (by breg7, relative to the stack pointer). */
#define SLEB(offset) #offset " & 0x7f | 0x80, " #offset " >> 7"
#define SAVED_AT(number, offset) ".cfi_escape 0x10, " #number ", 3, 0x77, " SLEB(offset) "\n"
__asm__(
    ".text\n"
    ".balign 16\n"
    ".cfi_startproc\n"
    ".cfi_signal_frame\n"
    ".cfi_escape 0x0f, 4, 0x77, " SLEB(160) ", 0x06\n"
    SAVED_AT(0, 144) SAVED_AT(1, 136) SAVED_AT(2, 152) SAVED_AT(3, 128) SAVED_AT(4, 112) SAVED_AT(5, 104)
    SAVED_AT(6, 120) SAVED_AT(7, 160) SAVED_AT(8, 40) SAVED_AT(9, 48) SAVED_AT(10, 56) SAVED_AT(11, 64)
    SAVED_AT(12, 72) SAVED_AT(13, 80) SAVED_AT(14, 88) SAVED_AT(15, 96) SAVED_AT(16, 168)
    "nop\n" /* unwinders look one byte before the return address */
    ".hidden fl_back_in_abort\n"
    ".globl fl_back_in_abort\n"
    ".type fl_back_in_abort, @function\n"
    "fl_back_in_abort:\n"
    "movq %rsp, %rbx\n"
    "movq %rsp, %rdi\n"
    "andq $-16, %rsp\n"
    "call fl_abort_goes_on\n"
    "movq %rbx, %rsp\n"
    "jmp *restorer(%rip)\n"
    ".cfi_endproc\n"
    ".size fl_back_in_abort, . - fl_back_in_abort\n");
extern char fl_back_in_abort[] __attribute__((visibility("hidden")));

static bool is_fatal(int signal_number) {
    for (size_t i = 0; i < FATAL_COUNT; i++)
        if (fatal_signals[i] == signal_number) return true;
    return false;
}

long kernel_action(int signal_number, const struct kernel_action *action, struct kernel_action *before) {
    return kernel(SYS_rt_sigaction, signal_number, (long)action, (long)before, sizeof action->mask, 0, 0);
}

/* ----------------------------------------------------------------------------- between program and kernel */

bool stands_aside;

static bool is_covered(const struct kernel_action *action) {
    return (char *)action->handler >= fl_entries && (char *)action->handler < fl_entries + sizeof fl_entries;
}

/* With an entry of ours in front of the program's action. */
static void cover(struct kernel_action *action) {
    if (stands_aside || action->handler == SIG_IGN) return; /* an ignored signal must not interrupt system calls */
    int own = (action->flags & SA_SIGINFO ? OWN_SIGINFO : 0) | (action->flags & SA_ONSTACK ? OWN_ONSTACK : 0) |
              (action->flags & SA_RESTORER ? OWN_RESTORER : 0) |
              (action->flags & (unsigned)SA_RESETHAND ? OWN_RESETHAND : 0);
    action->restorer = action->handler;
    action->handler = fl_entries + own * ENTRY_SIZE;
    action->flags |= SA_SIGINFO | SA_ONSTACK | SA_RESTORER;
}

/* The action as the program set it. */
static void uncover(struct kernel_action *action) {
    if (!is_covered(action)) return;
    int own = (int)(((char *)action->handler - fl_entries) / ENTRY_SIZE);
    action->flags &= ~(unsigned long)(SA_SIGINFO | SA_ONSTACK | SA_RESTORER);
    action->flags |= (own & OWN_SIGINFO ? SA_SIGINFO : 0) | (own & OWN_ONSTACK ? SA_ONSTACK : 0) |
                     (own & OWN_RESTORER ? SA_RESTORER : 0);
    action->handler = action->restorer;
    action->restorer = own & OWN_RESTORER ? restorer : NULL;
}

static int set_action(int signal_number, struct kernel_action *wanted, struct kernel_action *before) {
    if (wanted) cover(wanted);
    long failed = kernel_action(signal_number, wanted, before);
    if (failed) {
        errno = (int)-failed;
        return -1;
    }
    if (before) uncover(before);
    return 0;
}

/* The kernel has just made it the default action (SA_RESETHAND), and left the rest as it was. */
static void cover_after_reset(int signal_number, int own) {
    struct kernel_action action;
    if (stands_aside || kernel_action(signal_number, NULL, &action) || action.handler != SIG_DFL) return;
    action.handler = fl_entries + own * ENTRY_SIZE;
    action.restorer = SIG_DFL;
    kernel_action(signal_number, &action, NULL);
}

void learn_restorer(void) {
    struct kernel_action action;
    struct sigaction same;
    NEXT(sigaction)(SIGURG, NULL, &same);
    kernel_action(SIGURG, NULL, &action);
    NEXT(sigaction)(SIGURG, &same, NULL);
    struct kernel_action with_restorer;
    kernel_action(SIGURG, &action, &with_restorer);
    restorer = with_restorer.restorer;
}

void cover_default_actions(void) {
    learn_restorer();
    for (size_t i = 0; i < FATAL_COUNT; i++) {
        struct kernel_action action;
        if (kernel_action(fatal_signals[i], NULL, &action) || is_covered(&action)) continue;
        cover(&action);
        kernel_action(fatal_signals[i], &action, NULL);
    }
}

/* From here on a crash is not reported: where a report would change how the program ends. */
void step_aside(void) {
    if (stands_aside) return;
    stands_aside = process_id() == own_pid; /* else it is our parent's memory */
    drop_own_stack();
    for (size_t i = 0; i < FATAL_COUNT; i++) {
        struct kernel_action action;
        if (kernel_action(fatal_signals[i], NULL, &action) || !is_covered(&action)) continue;
        uncover(&action);
        kernel_action(fatal_signals[i], &action, NULL);
    }
}

void step_in_again(void) {
    stands_aside = false;
    give_own_stack();
    cover_default_actions();
}

/* ------------------------------------------------------------------------------- handlers of other signals */

/* They are the kernel's alone. But one that asks for an alternate stack where the program has none would be run on ours:
 * until the program sets one, the kernel is not told of the wish. */
static bool has_alternate_stacks;
static uint64_t wishes_stack; /* signals by bit */

static uint64_t bit_of(int signal_number) { return 1ull << (signal_number - 1); }

static int set_other_action(int signal_number, const struct sigaction *action, struct sigaction *before) {
    bool is_signal = signal_number > 0 && signal_number < NSIG;
    uint64_t bit = is_signal ? bit_of(signal_number) : 0, wished = __atomic_load_n(&wishes_stack, __ATOMIC_ACQUIRE) & bit;
    struct sigaction without;
    bool wishes = action && is_signal && (action->sa_flags & SA_ONSTACK) && !has_alternate_stacks;
    if (wishes) {
        without = *action;
        without.sa_flags &= ~SA_ONSTACK;
    }
    int failed = NEXT(sigaction)(signal_number, wishes ? &without : action, before);
    if (failed) return failed;
    if (before && wished && !has_alternate_stacks) before->sa_flags |= SA_ONSTACK;
    if (action && wishes) __atomic_fetch_or(&wishes_stack, bit, __ATOMIC_ACQ_REL);
    if (action && !wishes && wished) __atomic_fetch_and(&wishes_stack, ~bit, __ATOMIC_ACQ_REL);
    return 0;
}

static void forget_wish(int signal_number) {
    if (signal_number > 0 && signal_number < NSIG) __atomic_fetch_and(&wishes_stack, ~bit_of(signal_number), __ATOMIC_ACQ_REL);
}

void tell_wishes(void) {
    if (has_alternate_stacks) return;
    has_alternate_stacks = true;
    for (int signal_number = 1; signal_number < NSIG; signal_number++) {
        struct kernel_action action;
        if (!(wishes_stack & bit_of(signal_number)) || kernel_action(signal_number, NULL, &action)) continue;
        action.flags |= SA_ONSTACK;
        kernel_action(signal_number, &action, NULL);
    }
}

/* ---------------------------------------------------------------------------------- the program's own calls */

EXPORT int sigaction(int signal_number, const struct sigaction *action, struct sigaction *before) {
    if (!area) return NEXT(sigaction)(signal_number, action, before);
    keep_own_stack();
    if (action && (action->sa_flags & SA_ONSTACK)) note_who_sets_handlers(__builtin_return_address(0));
    if (!is_fatal(signal_number)) return set_other_action(signal_number, action, before);
    struct kernel_action wanted, old;
    if (action) {
        wanted = (struct kernel_action){(void *)action->sa_handler, (unsigned long)action->sa_flags | SA_RESTORER,
                                        restorer, 0};
        memcpy(&wanted.mask, &action->sa_mask, sizeof wanted.mask);
    }
    if (set_action(signal_number, action ? &wanted : NULL, &old)) return -1;
    if (before) {
        memset(before, 0, sizeof *before);
        before->sa_handler = (sighandler_t)old.handler;
        memcpy(&before->sa_mask, &old.mask, sizeof old.mask);
        before->sa_flags = (int)old.flags;
        before->sa_restorer = (void (*)(void))old.restorer;
    }
    return 0;
}

static uint64_t interrupting; /* what siginterrupt() was called for: signal() then leaves SA_RESTART out */

static sighandler_t simple_signal(int signal_number, sighandler_t handler, unsigned long flags, uint64_t mask) {
    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    struct kernel_action wanted = {(void *)handler, flags | SA_RESTORER, restorer, mask}, before;
    return set_action(signal_number, &wanted, &before) ? SIG_ERR : (sighandler_t)before.handler;
}

EXPORT sighandler_t signal(int signal_number, sighandler_t handler) {
    if (!area || !is_fatal(signal_number)) {
        forget_wish(signal_number);
        return NEXT(signal)(signal_number, handler);
    }
    uint64_t bit = bit_of(signal_number);
    return simple_signal(signal_number, handler, interrupting & bit ? 0 : SA_RESTART, bit);
}

EXPORT sighandler_t bsd_signal(int signal_number, sighandler_t handler) { return signal(signal_number, handler); }
EXPORT sighandler_t ssignal(int signal_number, sighandler_t handler) { return signal(signal_number, handler); }

EXPORT sighandler_t sysv_signal(int signal_number, sighandler_t handler) {
    if (!area || !is_fatal(signal_number)) {
        forget_wish(signal_number);
        return NEXT(sysv_signal)(signal_number, handler);
    }
    return simple_signal(signal_number, handler, (unsigned)SA_RESETHAND | SA_NODEFER | SA_INTERRUPT, 0);
}

EXPORT sighandler_t __sysv_signal(int signal_number, sighandler_t handler) {
    return sysv_signal(signal_number, handler);
}

EXPORT int siginterrupt(int signal_number, int interrupts) {
    if (!area || !is_fatal(signal_number)) return NEXT(siginterrupt)(signal_number, interrupts);
    struct kernel_action action;
    if (set_action(signal_number, NULL, &action)) return -1;
    if (interrupts) {
        __atomic_fetch_or(&interrupting, bit_of(signal_number), __ATOMIC_RELAXED);
        action.flags &= ~(unsigned long)SA_RESTART;
    } else {
        __atomic_fetch_and(&interrupting, ~bit_of(signal_number), __ATOMIC_RELAXED);
        action.flags |= SA_RESTART;
    }
    action.flags |= SA_RESTORER;
    return set_action(signal_number, &action, NULL);
}

static bool set_blocked(int how, int signal_number) {
    uint64_t mask = bit_of(signal_number), before = 0;
    kernel(SYS_rt_sigprocmask, how, (long)&mask, (long)&before, sizeof mask, 0, 0);
    return before & mask;
}

EXPORT sighandler_t sigset(int signal_number, sighandler_t disposition) {
    if (!area || !is_fatal(signal_number)) {
        forget_wish(signal_number);
        return NEXT(sigset)(signal_number, disposition);
    }
    struct kernel_action before;
    if (disposition == SIG_HOLD) {
        if (set_blocked(SIG_BLOCK, signal_number)) return SIG_HOLD;
        return set_action(signal_number, NULL, &before) ? SIG_ERR : (sighandler_t)before.handler;
    }
    sighandler_t old = simple_signal(signal_number, disposition, 0, 0);
    if (old == SIG_ERR) return SIG_ERR;
    return set_blocked(SIG_UNBLOCK, signal_number) ? SIG_HOLD : old;
}

EXPORT int sigignore(int signal_number) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_IGN;
    return sigaction(signal_number, &action, NULL);
}

/* ------------------------------------------------------------------------ a handler of the program's is run */

/* The fault that a handler of the program works on, or has worked on, on this thread. */
static __thread INITIAL_EXEC struct {
    const char *frame; /* NULL: none */
    struct fl_fault fault;
} handled;

void fill_fault(struct fl_fault *fault, int signal_number, const siginfo_t *info, const ucontext_t *context) {
    fault->pid = process_id();
    fault->tid = thread_id();
    fault->time_ns = now_ns();
    fault->signal = signal_number;
    fault->chained = 0;
    memcpy(fault->siginfo, info, sizeof fault->siginfo);
    memcpy(fault->gregs, context->uc_mcontext.gregs, sizeof fault->gregs);
}

static bool same_place(const ucontext_t *context, const struct fl_fault *fault) {
    return (uint64_t)context->uc_mcontext.gregs[REG_RIP] == fault->gregs[REG_RIP] &&
           (uint64_t)context->uc_mcontext.gregs[REG_RSP] == fault->gregs[REG_RSP];
}

static bool is_way_back(const void *address) { return address == restorer || address == fl_back_in_abort; }

/* Is a function at this stack pointer called by the handler? One that left by longjmp() leaves its frame behind, which
 * the calls after it overwrite. */
static bool is_inside_handler(const char *stack_pointer) {
    const char *frame = handled.frame;
    return frame && stack_pointer < frame && frame - stack_pointer < (1 << 20) && is_readable(frame) &&
           is_readable(frame + FRAME_SIZE) && is_way_back(*(void *const *)frame) &&
           same_place((const ucontext_t *)(frame + FRAME_CONTEXT), &handled.fault);
}

/* The fault that a handler of the program took on this thread, if `context` was interrupted inside of that handler or
 * right behind it, with nothing executed in between; else NULL. */
static const struct fl_fault *fault_being_handled(const siginfo_t *info, const ucontext_t *context) {
    if (!handled.frame || handled.fault.pid != process_id()) return NULL;
    if (is_inside_handler((const char *)context->uc_mcontext.gregs[REG_RSP])) return &handled.fault;
    /* Raised while it was blocked: it comes when the handler returns. */
    return info->si_code <= 0 && same_place(context, &handled.fault) ? &handled.fault : NULL;
}

/* Handlers recover so. */
#define WRAP_JUMP(name)                                                          \
    EXPORT void __attribute__((noreturn)) name(struct __jmp_buf_tag to[1], int value) { \
        handled.frame = NULL;                                                    \
        NEXT(name)(to, value);                                                   \
        __builtin_unreachable();                                                 \
    }

WRAP_JUMP(longjmp)
WRAP_JUMP(_longjmp)
WRAP_JUMP(siglongjmp)
WRAP_JUMP(__longjmp_chk)

void regain_own_stack(void) {
    if (is_inside_handler(__builtin_frame_address(0))) return; /* it will be lost once more */
    is_own_stack_lost = false;
    give_own_stack();
}

/* If the process ends in the handler, this tells why. */
void note_end_in_handler(void) {
    if (!is_inside_handler(__builtin_frame_address(0)) || handled.fault.pid != process_id()) return;
    struct fl_handled *note = &area->handled[handled.fault.pid % FL_HANDLED];
    note->fault = handled.fault;
    __atomic_store_n(&note->active, 1, __ATOMIC_RELEASE);
}

static bool is_on(const stack_t *stack, const char *address) {
    const char *low = stack->ss_sp;
    return !(stack->ss_flags & SS_DISABLE) && address > low && (size_t)(address - low) <= stack->ss_size;
}

#define XSTATE_MAGIC 0x46505853 /* FP_XSTATE_MAGIC1 */

static size_t size_of_vector_registers(const char *registers) {
    uint32_t description[2]; /* fpx_sw_bytes: magic1, extended_size */
    memcpy(description, registers + 464, sizeof description);
    return description[0] == XSTATE_MAGIC ? description[1] : 512;
}

/* Asked of the kernel, which does not fault. What it writes there is below the stack. */
static bool is_writable(const char *from, const char *to) {
    for (uintptr_t at = (uintptr_t)from & ~7ul; at < (uintptr_t)to; at = (at | 4095) + 1)
        if (kernel(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)at, sizeof(uint64_t), 0, 0) == -EFAULT) return false;
    return true;
}

/* To where the kernel would have made it on the interrupted stack; NULL: there is no room. */
static char *move_frame(char *frame, bool hides_stack) {
    ucontext_t *context = (ucontext_t *)(frame + FRAME_CONTEXT);
    const char *registers = (const char *)context->uc_mcontext.fpregs;
    size_t size = size_of_vector_registers(registers);
    char *top = (char *)context->uc_mcontext.gregs[REG_RSP] - RED_ZONE;
    char *new_registers = (char *)(((uintptr_t)top - size) & ~63ul);
    char *new_frame = (char *)((((uintptr_t)new_registers - FRAME_SIZE) & ~15ul) - 8);
    if (!is_writable(new_frame, top)) return NULL;
    memcpy(new_registers, registers, size);
    memcpy(new_frame, frame, FRAME_SIZE);
    context = (ucontext_t *)(new_frame + FRAME_CONTEXT);
    context->uc_mcontext.fpregs = (fpregset_t)new_registers;
    /* When the handler returns, the kernel makes this the thread's alternate stack, and ours may be gone. */
    if (hides_stack) context->uc_stack = (stack_t){.ss_flags = shown_stack_flags};
    if (hides_stack) is_own_stack_lost = shown_stack_flags & SS_DISABLE;
    return new_frame;
}

/* The frame on the stack that the handler would have had. */
static char *frame_for_handler(char *frame, int own) {
    ucontext_t *context = (ucontext_t *)(frame + FRAME_CONTEXT);
    const char *interrupted = (const char *)context->uc_mcontext.gregs[REG_RSP];
    bool has_switched = is_on(&context->uc_stack, frame) && !is_on(&context->uc_stack, interrupted);
    bool is_ours = own_stack && context->uc_stack.ss_sp == own_stack && !is_own_stack_adopted;
    if (!has_switched || (!is_ours && (own & OWN_ONSTACK))) return frame;
    return move_frame(frame, is_ours);
}

struct landing {
    void *handler; /* NULL: back to what was interrupted */
    char *frame;
};

/* Some runtimes give the register of thread-local memory another meaning, or none. */
static bool has_thread_memory(void) {
    unsigned long base = 0;
    return kernel(SYS_arch_prctl, ARCH_GET_FS, (long)&base, 0, 0, 0, 0) == 0 && base;
}

#define MAX_ABORT_SIZE 1024 /* bytes of code */
#define RAISE_FRAMES 64     /* words on the stack, of raise() and what it calls */

/* abort() calls the handler first. If that returns, the signal is raised again, past us, and nobody is asked any more. */
static bool is_raised_by_abort(const siginfo_t *info, const ucontext_t *context) {
    if (info->si_signo != SIGABRT || info->si_code != SI_TKILL || info->si_pid != process_id()) return false;
    const uint64_t *stack = (const uint64_t *)context->uc_mcontext.gregs[REG_RSP];
    uint64_t code = (uint64_t)next_functions.abort;
    for (int i = 0; code && i < RAISE_FRAMES && is_readable(stack + i); i++)
        if (stack[i] > code && stack[i] < code + MAX_ABORT_SIZE) return true;
    return false;
}

__attribute__((used)) void fl_abort_goes_on(ucontext_t *context) {
    siginfo_t *info = (siginfo_t *)((char *)context + FRAME_INFO - FRAME_CONTEXT);
    report_abort(info, context, fault_being_handled(info, context));
}

#define ENDLESS 10000 /* returns to the same instruction */

/* The handler has returned to the instruction, which faults again. Python's handlers do: they leave a note for later. */
static void count_return(const siginfo_t *info, const ucontext_t *context) {
    static __thread INITIAL_EXEC uint32_t returns;
    bool is_repeated = info->si_code > 0 && handled.frame && same_place(context, &handled.fault);
    returns = is_repeated ? returns + 1 : 0;
    if (!returns || returns % ENDLESS) return;
    struct fl_handled *note = &area->handled[process_id() % FL_HANDLED];
    fill_fault(&note->fault, info->si_signo, info, context);
    note->fault.chained = 2;
    __atomic_store_n(&note->active, 1, __ATOMIC_RELEASE);
}

static struct landing run_handler(void *handler, int signal_number, siginfo_t *info, ucontext_t *context, int own,
                                  char *frame) {
    int saved_errno = errno;
    if (own & OWN_RESETHAND) cover_after_reset(signal_number, own);
    char *moved = frame_for_handler(frame, own);
    if (moved && !fault_being_handled(info, context)) {
        count_return(info, context);
        fill_fault(&handled.fault, signal_number, info, context);
        handled.fault.chained = 1;
        handled.frame = moved;
    }
    if (moved && is_raised_by_abort(info, context)) *(void **)moved = fl_back_in_abort;
    errno = saved_errno;
    return (struct landing){handler, moved};
}

/* Called by the entries. */
__attribute__((used)) struct landing fl_enter(int signal_number, siginfo_t *info, ucontext_t *context, int own,
                                              char *frame) {
    /* Somebody who found our entry in the kernel may call it like any function: there is no frame then. */
    bool is_frame = (char *)context == frame + FRAME_CONTEXT && (char *)info == frame + FRAME_INFO;
    void *handler = is_frame ? *(void **)frame : NULL;
    bool has_memory = has_thread_memory();
    if (is_frame) *(void **)frame = restorer;
    /* The kernel lets nobody send the first process of a namespace what it has no handler for. */
    if (!handler && info->si_code <= 0 && process_id() == 1) return (struct landing){NULL, NULL};
    if (handler && !has_memory) return (struct landing){handler, frame};
    if (handler) {
        struct landing landing = run_handler(handler, signal_number, info, context, own, frame);
        if (landing.frame) return landing;
    }
    const struct fl_fault *first = has_memory ? fault_being_handled(info, context) : NULL;
    /* Where a handler has no room, the kernel kills. */
    report_crash(signal_number, info, context, first, handler ? SIGSEGV : signal_number);
    return (struct landing){NULL, NULL};
}
