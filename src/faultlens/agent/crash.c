/* A fatal signal that nobody handles: all threads stand still, the supervisor looks, and then it happens. */
#define _GNU_SOURCE
#include "parts.h"

#include <linux/futex.h>
#include <sys/resource.h>

#define PARK_LIMIT_NS 20000000
#define MAX_PARKED 4096
#define MAX_GUESSED 32768

/* Who crashes: process and thread; 0: nobody. A child of vfork() shares it with its parent. */
static uint64_t crashing;
static struct fl_slot *crash_slot;

/* Threads that stand still, with what they were interrupted at; the supervisor reads it. */
static struct fl_parked parked[MAX_PARKED];
static uint32_t parked_count;

static uint64_t identity(void) { return (uint64_t)process_id() << 32 | (uint32_t)thread_id(); }

static long futex(uint32_t *word, int operation, uint32_t value, const struct timespec *timeout) {
    return kernel(SYS_futex, (long)word, operation, value, (long)timeout, 0, 0);
}

/* Raised when it turns out that the process lives on: those that stand still are woken. */
static uint32_t spared;

static uint32_t times_spared(void) { return __atomic_load_n(&spared, __ATOMIC_ACQUIRE); }

static void stand_still(uint32_t until_not) {
    while (times_spared() == until_not) futex(&spared, FUTEX_WAIT, until_not, NULL);
}

/* What cannot be stopped must at least not end the process, which would be dead by now without us. */
void hold_if_crashing(void) {
    uint32_t times = times_spared();
    uint64_t all = ~0ull, mask, who = __atomic_load_n(&crashing, __ATOMIC_ACQUIRE);
    if (!who || who >> 32 != (uint64_t)process_id() || who == identity()) return;
    kernel(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, (long)&mask, sizeof all, 0, 0);
    stand_still(times);
    kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof mask, 0, 0);
}

/* ---------------------------------------------------------------------------------- all threads stand still */

static void park(void *context) {
    uint32_t times = times_spared();
    uint32_t index = __atomic_fetch_add(&parked_count, 1, __ATOMIC_ACQ_REL);
    if (index < MAX_PARKED) {
        parked[index].context = (uint64_t)context;
        __atomic_store_n(&parked[index].tid, thread_id(), __ATOMIC_RELEASE);
    }
    stand_still(times);
}

static void on_park(int signal_number, siginfo_t *info, void *context) {
    (void)signal_number, (void)info;
    park(context);
}

static int open_task_folder(void) {
    const char *path = "/proc/self/task";
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    long folder = kernel(SYS_openat, AT_FDCWD, (long)path, flags, 0, 0, 0);
    if (folder != -EMFILE) return (int)folder;
    struct rlimit limit, more; /* one more for a moment, where the program may have it */
    if (kernel(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit, 0, 0) || limit.rlim_cur >= limit.rlim_max) return -1;
    more = (struct rlimit){limit.rlim_cur + 1, limit.rlim_max};
    kernel(SYS_prlimit64, 0, RLIMIT_NOFILE, (long)&more, 0, 0, 0);
    folder = kernel(SYS_openat, AT_FDCWD, (long)path, flags, 0, 0, 0);
    kernel(SYS_prlimit64, 0, RLIMIT_NOFILE, (long)&limit, 0, 0, 0);
    return (int)folder;
}

static int sent_to[MAX_PARKED];
static uint32_t sent_count;

static bool was_sent_to(int tid) {
    for (uint32_t i = 0; i < sent_count; i++)
        if (sent_to[i] == tid) return true;
    return false;
}

static int number_in(const char *digits) {
    int number = 0;
    for (; *digits >= '0' && *digits <= '9'; digits++) number = number * 10 + (*digits - '0');
    return number;
}

struct entry { /* struct linux_dirent64 */
    uint64_t inode;
    int64_t offset;
    uint16_t size;
    uint8_t type;
    char name[];
};

static void signal_thread(int pid, int tid, int self) {
    if (!tid || tid == self || sent_count == MAX_PARKED || was_sent_to(tid)) return;
    if (kernel(SYS_tgkill, pid, tid, OUR_SIGNAL, 0, 0, 0) == 0) sent_to[sent_count++] = tid;
}

/* Returns how many were new. */
static uint32_t signal_threads(int folder, int pid, int self) {
    static char entries[4096] __attribute__((aligned(8)));
    uint32_t before = sent_count;
    long size;
    /* Without /proc they are guessed: threads are numbered after the process that they belong to. */
    for (int tid = pid; folder < 0 && !before && tid < pid + MAX_GUESSED; tid++) signal_thread(pid, tid, self);
    kernel(SYS_lseek, folder, 0, SEEK_SET, 0, 0, 0);
    while ((size = kernel(SYS_getdents64, folder, (long)entries, sizeof entries, 0, 0, 0)) > 0)
        for (long at = 0; at < size;) {
            struct entry *entry = (struct entry *)(entries + at);
            at += entry->size;
            signal_thread(pid, number_in(entry->name), self);
        }
    return sent_count - before;
}

static struct kernel_action libc_action; /* of our signal, which is the C library's own */

/* A thread that runs is stopped within microseconds; one that waits in the kernel stays there. */
static void stop_other_threads(void) {
    unsigned long flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_RESTORER;
    struct kernel_action action = {(void *)on_park, flags, restorer, ~0ull};
    sent_count = parked_count = 0;
    int folder = open_task_folder();
    kernel_action(OUR_SIGNAL, &action, &libc_action);
    int64_t end = now_ns() + PARK_LIMIT_NS;
    /* Threads that run may start others: look again until nothing is new. */
    while (signal_threads(folder, process_id(), thread_id()) && now_ns() < end)
        while (__atomic_load_n(&parked_count, __ATOMIC_ACQUIRE) < sent_count && now_ns() < end)
            kernel(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    kernel(SYS_close, folder, 0, 0, 0, 0, 0);
}

/* -------------------------------------------------------------------------------------- the supervisor looks */

struct fl_slot *claim_slot(void) {
    for (int i = 0; i < FL_SLOTS; i++) {
        uint32_t expected = FL_FREE;
        if (__atomic_compare_exchange_n(&area->slots[i].state, &expected, FL_CLAIMED, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return &area->slots[i];
    }
    return NULL;
}

/* From a namespace of processes below it, it cannot be. */
static bool was_supervisor_seen;

static bool is_supervisor_seen(void) { return kernel(SYS_kill, area->supervisor_pid, 0, 0, 0, 0, 0) != -ESRCH; }

void look_for_supervisor(void) { was_supervisor_seen = is_supervisor_seen(); }

/* Wait while the slot has this state, for a limited time. */
static void wait_while(struct fl_slot *slot, uint32_t state, uint32_t limit_ms) {
    int64_t end = now_ns() + limit_ms * 1000000ll;
    while (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == state && now_ns() < end) {
        struct timespec step = {0, 100 * 1000 * 1000};
        futex(&slot->state, FUTEX_WAIT, state, &step);
        if (was_supervisor_seen && !is_supervisor_seen()) return;
    }
}

void tell_supervisor(struct fl_slot *slot) {
    copy_exceptions(slot);
    kernel(SYS_prctl, PR_SET_PTRACER, area->supervisor_pid, 0, 0, 0, 0);
    __atomic_store_n(&slot->state, FL_WAITING, __ATOMIC_RELEASE);
    __atomic_fetch_add(&area->wake, 1, __ATOMIC_ACQ_REL);
    futex(&area->wake, FUTEX_WAKE, INT32_MAX, NULL);
    wait_while(slot, FL_WAITING, area->accept_ms);
    wait_while(slot, FL_ACCEPTED, area->finish_ms);
}

/* Another thread is being reported already: leave a note and wait for the end of the process. */
static void join_crash(int signal_number, siginfo_t *info, ucontext_t *context) {
    struct fl_slot *slot = __atomic_load_n(&crash_slot, __ATOMIC_ACQUIRE);
    if (slot) {
        uint32_t index = __atomic_fetch_add(&slot->also_count, 1, __ATOMIC_ACQ_REL);
        if (index < FL_ALSO) fill_fault(&slot->also[index], signal_number, info, context);
    }
    park(context);
}

/* ------------------------------------------------------------------------------------------- and it happens */

static siginfo_t last_info; /* of the crash, for the second try below */
static int last_signal;

static void send_again(void) {
    int pid = process_id(), tid = thread_id();
    if (kernel(SYS_rt_tgsigqueueinfo, pid, tid, last_signal, (long)&last_info, 0, 0))
        kernel(SYS_tgkill, pid, tid, last_signal, 0, 0, 0);
}

#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1
#endif
#define SYSCALL_SIZE 2 /* of the instruction */
#define TRAP_FLAG 0x100ll /* of the flags register: stop after one instruction */

/* The faulting instruction went through the second time: without the agent the program would be dead. */
static void on_survival(int signal_number, siginfo_t *info, void *context) {
    (void)signal_number, (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    send_again();
}

/* Let the signal happen again, now with its default action. A true fault is repeated by its instruction, so
 * that the kernel log and the core file are those of the fault itself; other signals are sent again as they
 * came. */
static void let_it_happen(int signal_number, siginfo_t *info, ucontext_t *context) {
    struct kernel_action action = {SIG_DFL, SA_RESTORER, restorer, 0};
    kernel_action(signal_number, &action, NULL);
    last_info = *info;
    last_signal = signal_number;
    /* It came in sigsuspend(), perhaps, and would be blocked again where the handler returns to. */
    sigdelset(&context->uc_sigmask, signal_number);
    if (signal_number == SIGSYS && info->si_code == SYS_SECCOMP) { /* the forbidden call is made again */
        context->uc_mcontext.gregs[REG_RIP] -= SYSCALL_SIZE;
        return;
    }
    /* A breakpoint lies behind the program already: it would go on. */
    bool is_repeated = signal_number == SIGSEGV || signal_number == SIGBUS || signal_number == SIGFPE || signal_number == SIGILL;
    if (info->si_code <= 0 || info->si_signo != signal_number || !is_repeated) {
        send_again();
        return;
    }
    /* Memory may have been mended meanwhile, and whoever sent a signal may have called it a fault. */
    action = (struct kernel_action){(void *)on_survival, SA_SIGINFO | SA_ONSTACK | SA_RESTORER, restorer, ~0ull};
    kernel_action(SIGTRAP, &action, NULL);
    sigdelset(&context->uc_sigmask, SIGTRAP);
    context->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void block_all_signals(void) {
    uint64_t all = ~0ull;
    kernel(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, 0, sizeof all, 0, 0);
}

/* Returns where it was told; NULL: nowhere. */
static struct fl_slot *report(int signal_number, siginfo_t *info, ucontext_t *context, const struct fl_fault *first,
                              bool is_in_doubt) {
    uint64_t self = identity(), who = __atomic_load_n(&crashing, __ATOMIC_ACQUIRE);
    block_all_signals();
    do {
        if (who == self) return NULL; /* our second time here */
        while (who >> 32 == self >> 32) {
            join_crash(signal_number, info, context);
            who = __atomic_load_n(&crashing, __ATOMIC_ACQUIRE);
        }
    } while (!__atomic_compare_exchange_n(&crashing, &who, self, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    stop_other_threads();
    struct fl_slot *slot = claim_slot();
    if (!slot) return NULL;
    slot->also_count = slot->exception_count = 0;
    slot->is_in_doubt = is_in_doubt;
    slot->parked = (uint64_t)parked;
    if (first)
        slot->fault = *first;
    else
        fill_fault(&slot->fault, signal_number, info, context);
    slot->parked_count = __atomic_load_n(&parked_count, __ATOMIC_ACQUIRE);
    __atomic_store_n(&crash_slot, slot, __ATOMIC_RELEASE);
    tell_supervisor(slot);
    return slot;
}

void report_crash(int signal_number, siginfo_t *info, ucontext_t *context, const struct fl_fault *first, int dies_by) {
    report(signal_number, info, context, first, false);
    let_it_happen(dies_by, info, context);
}

static void live_on(struct fl_slot *slot) {
    uint32_t expected = FL_SPARED;
    if (slot) __atomic_compare_exchange_n(&slot->state, &expected, FL_FREE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    kernel_action(OUR_SIGNAL, &libc_action, NULL);
    __atomic_store_n(&crash_slot, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&crashing, 0, __ATOMIC_RELEASE);
    __atomic_fetch_add(&spared, 1, __ATOMIC_ACQ_REL);
    futex(&spared, FUTEX_WAKE, INT32_MAX, NULL);
}

/* The handler of the program has returned to abort(), which now ends the process by itself: nothing is to be done but to
 * keep the others from using the time. Whether it is abort() the supervisor sees better than we do. */
void report_abort(siginfo_t *info, ucontext_t *context, const struct fl_fault *first) {
    struct fl_slot *slot = report(SIGABRT, info, context, first, true);
    bool is_let_go = slot && __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == FL_FREE;
    bool is_anothers = slot && slot->fault.pid != process_id();
    if (!is_let_go && !is_anothers) live_on(slot);
}

EXPORT void __attribute__((noreturn)) _exit(int status) {
    if (area) {
        hold_if_crashing();
        note_end_in_handler();
    }
    NEXT(_exit)(status);
    __builtin_unreachable();
}

EXPORT void __attribute__((noreturn)) _Exit(int status) { _exit(status); }

/* exit() ends the process from inside the C library, but comes by here before. */
static void __attribute__((destructor)) end_agent(void) {
    if (!area) return;
    hold_if_crashing();
    note_end_in_handler();
}
