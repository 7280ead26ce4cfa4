/* faultlens.install(): the agent in a program that was not started with it.
 *
 * Nothing is wrapped here: the program's calls of sigaction() go past us. So our handlers are set as any library would
 * set its own; those that were there before are called behind ours, and those that come later call ours or do not. Only
 * where Python's signal.signal() sets one do we come to know of it.
 *
 * The supervisor is a helper process. The program must not notice it: it is nobody's child that wait() would show, no
 * SIGCHLD comes of it, and it holds no descriptor of the program's but the one that it writes reports to.
 */
#define _GNU_SOURCE
#include "parts.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* ------------------------------------------------------------------------------------------------- handlers */

static struct sigaction before[NSIG]; /* what the program had */
static uint64_t seen_handled;         /* signals by bit: those that a handler of the program's was given once */

/* It may recover, as some runtimes do a thousand times a second: it is looked at once, and after that only noted. The
 * helper believes it when the process ends. */
static void report_handled(int signal_number, siginfo_t *info, ucontext_t *context) {
    struct fl_handled *note = &area->handled[process_id() % FL_HANDLED];
    fill_fault(&note->fault, signal_number, info, context);
    note->fault.chained = 1;
    __atomic_store_n(&note->active, 1, __ATOMIC_RELEASE);
    uint64_t bit = 1ull << (signal_number - 1);
    if (__atomic_fetch_or(&seen_handled, bit, __ATOMIC_ACQ_REL) & bit) return;
    struct fl_slot *slot = claim_slot();
    if (!slot) return;
    slot->also_count = slot->exception_count = slot->parked_count = slot->is_in_doubt = 0;
    slot->fault = note->fault;
    tell_supervisor(slot);
}

static void on_fatal(int signal_number, siginfo_t *info, void *context) {
    int saved_errno = errno;
    const struct sigaction *theirs = &before[signal_number];
    bool is_sent = info->si_code <= 0;
    if (theirs->sa_handler != SIG_DFL) {
        if (!is_sent || info->si_pid == process_id()) report_handled(signal_number, info, context);
        errno = saved_errno;
        if (theirs->sa_flags & SA_SIGINFO)
            theirs->sa_sigaction(signal_number, info, context);
        else
            theirs->sa_handler(signal_number);
        return;
    }
    /* The kernel lets nobody send the first process of a namespace what it has no handler for. */
    if (!is_sent || process_id() != 1) report_crash(signal_number, info, context, NULL, signal_number);
    errno = saved_errno;
}

static void set_handler(int signal_number) {
    struct sigaction ours;
    if (NEXT(sigaction)(signal_number, NULL, &ours) || ours.sa_handler == SIG_IGN || ours.sa_sigaction == on_fatal) return;
    before[signal_number] = ours; /* a handler is called as it would be without us */
    if (ours.sa_handler == SIG_DFL) ours.sa_flags = SA_ONSTACK;
    ours.sa_flags |= SA_SIGINFO;
    ours.sa_sigaction = on_fatal;
    NEXT(sigaction)(signal_number, &ours, NULL);
}

/* Another handler may have taken the place of ours. */
EXPORT void faultlens_set_handler(int signal_number) {
    for (size_t i = 0; i < FATAL_COUNT; i++)
        if (fatal_signals[i] == signal_number) set_handler(signal_number);
}

/* Returns whether it succeeded. The alternate stack is for the thread that calls: others cannot be given one. */
EXPORT bool faultlens_set_handlers(const char *area_path) {
    if (area) return true;
    struct fl_area *found = open_area(area_path);
    if (!found || pthread_key_create(&own_stack_key, end_own_stack)) return false;
    own_pid = process_id();
    area = found;
    learn_restorer();
    look_for_supervisor();
    give_own_stack();
    if (own_stack) pthread_setspecific(own_stack_key, own_stack);
    for (size_t i = 0; i < FATAL_COUNT; i++) set_handler(fatal_signals[i]);
    __atomic_fetch_add(&found->attached, 1, __ATOMIC_RELAXED);
    return true;
}

/* ---------------------------------------------------------------------------------------------- the helper */

/* In the memory of the program, until it is another program: system calls only. */
struct helper {
    char *const *arguments;
    char *const *variables;
    int ready; /* its end of a pipe */
    uint64_t mask;
    char stacks[2][16384] __attribute__((aligned(16)));
};

#define HELPER_READY 3

static void close_from(unsigned first) {
    if (kernel(SYS_close_range, first, ~0u, 0, 0, 0, 0) == 0) return;
    struct rlimit limit = {1024, 1024};
    kernel(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit, 0, 0);
    for (unsigned file = first; file < limit.rlim_cur && file < 65536; file++) kernel(SYS_close, file, 0, 0, 0, 0, 0);
}

static int become_helper(void *raw) {
    struct helper *helper = raw;
    kernel(SYS_setsid, 0, 0, 0, 0, 0, 0); /* Ctrl-C is for the program */
    long nothing = kernel(SYS_openat, AT_FDCWD, (long)"/dev/null", O_RDWR, 0, 0, 0);
    /* Where the program has closed its own, any of them may have a number below 3. */
    long ready = kernel(SYS_fcntl, helper->ready, F_DUPFD, 10, 0, 0, 0);
    if (kernel(SYS_fcntl, STDERR_FILENO, F_GETFD, 0, 0, 0, 0) < 0) kernel(SYS_dup2, nothing, STDERR_FILENO, 0, 0, 0, 0);
    kernel(SYS_dup2, nothing, STDIN_FILENO, 0, 0, 0, 0);
    kernel(SYS_dup2, nothing, STDOUT_FILENO, 0, 0, 0, 0);
    kernel(SYS_dup2, ready, HELPER_READY, 0, 0, 0, 0);
    close_from(HELPER_READY + 1);
    kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&helper->mask, 0, sizeof helper->mask, 0, 0);
    kernel(SYS_execve, (long)helper->arguments[0], (long)helper->arguments, (long)helper->variables, 0, 0, 0);
    return 127;
}

static int leave_orphan(void *raw) {
    struct helper *helper = raw;
    return clone(become_helper, helper->stacks[1] + sizeof helper->stacks[1], CLONE_VM | CLONE_VFORK | SIGCHLD, raw) < 0;
}

/* Not by fork(): the program may be large, and have threads. Returns whether it was started. */
EXPORT bool faultlens_start_helper(char *const arguments[], char *const variables[], int ready) {
    uint64_t all = ~0ull, mask = 0;
    long memory = kernel(SYS_mmap, 0, sizeof(struct helper), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory < 0) return false;
    struct helper *helper = (struct helper *)memory;
    helper->arguments = arguments;
    helper->variables = variables;
    helper->ready = ready;
    kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&mask, sizeof mask, 0, 0); /* no handler runs in both */
    /* Ends without a signal to us, and wait() does not see it. */
    int between = clone(leave_orphan, helper->stacks[0] + sizeof helper->stacks[0], CLONE_VM | CLONE_VFORK, helper);
    int status = -1;
    if (between > 0) kernel(SYS_wait4, between, (long)&status, __WCLONE, 0, 0, 0);
    kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof mask, 0, 0);
    kernel(SYS_munmap, memory, sizeof(struct helper), 0, 0, 0, 0);
    return status == 0;
}
