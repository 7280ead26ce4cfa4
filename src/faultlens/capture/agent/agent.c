/* The agent: preloaded into the supervised program, it tells the supervisor of a fatal signal and waits.
 *
 * Rules: nothing happens while the program lives but for a few function calls passed through; handlers
 * allocate nothing and call only async-signal-safe functions; the program's own handlers run as they would
 * without the agent; the signal, the exit status and the core file stay what they were.
 */
#define _GNU_SOURCE
#include "agent.h"
#include "inside.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#define EXPORT __attribute__((visibility("default")))
#define AGENT_FILE "libfaultlens_agent.so"
#define HANDLER __attribute__((force_align_arg_pointer)) /* emulators enter handlers with the stack misaligned */
#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

static struct fl_area *area; /* NULL: not supervised, everything is passed through */

/* The functions that ours stand in front of. Looked up by the constructor, not on first use: dlsym() frees the
 * text of dlerror(), which the program may be about to print. */
#define WRAPPED(X)                                                                                           \
    X(sigaction) X(signal) X(sysv_signal) X(pthread_create) X(write) X(writev) X(syscall) X(fwrite) X(fputs) \
    X(fputc) X(putc) X(vfprintf) X(__vfprintf_chk) X(execve) X(execvpe) X(posix_spawn) X(posix_spawnp) \
    X(open) X(open64)

extern int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list arguments);
#undef putc

static struct {
#define DECLARE(name) __typeof__(&name) name;
    WRAPPED(DECLARE)
} next_functions;

static void find_next_functions(void) {
#define LOOK_UP(name) next_functions.name = (__typeof__(&name))dlsym(RTLD_NEXT, #name);
    WRAPPED(LOOK_UP)
}

/* Other preloaded libraries may call us before our constructor has run. */
#define NEXT(name) ({ if (!next_functions.name) find_next_functions(); next_functions.name; })

static const int fatal_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
#define FATAL_COUNT (sizeof fatal_signals / sizeof *fatal_signals)

static bool is_fatal(int signal_number) {
    for (size_t i = 0; i < FATAL_COUNT; i++)
        if (fatal_signals[i] == signal_number) return true;
    return false;
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* The kernel itself, past the C library's syscall(), which is wrapped below; returns -errno. */
static long kernel(long number, long a, long b, long c, long d, long e, long f) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static int thread_id(void) { return (int)kernel(SYS_gettid, 0, 0, 0, 0, 0, 0); }

/* ------------------------------------------------------------------ what the program wants of a signal */

/* The action the program asked for. Published by pointer, so that a handler can read it at any instant. */
#define POOL 256
static struct sigaction pool[POOL];
static uint32_t pool_next;
static const struct sigaction default_action; /* SIG_DFL */
static const struct sigaction *wanted[NSIG];

static const struct sigaction *wanted_action(int signal_number) {
    const struct sigaction *action = __atomic_load_n(&wanted[signal_number], __ATOMIC_ACQUIRE);
    return action ? action : &default_action;
}

static const struct sigaction *want_action(int signal_number, const struct sigaction *action) {
    struct sigaction *copy = &pool[__atomic_fetch_add(&pool_next, 1, __ATOMIC_RELAXED) % POOL];
    *copy = *action;
    const struct sigaction *before = __atomic_exchange_n(&wanted[signal_number], copy, __ATOMIC_ACQ_REL);
    return before ? before : &default_action;
}

static void HANDLER on_fatal_signal(int signal_number, siginfo_t *info, void *context);

static int install_handler(int signal_number, int restart_flag) {
    struct sigaction ours;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_fatal_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | restart_flag;
    sigfillset(&ours.sa_mask);
    return NEXT(sigaction)(signal_number, &ours, NULL);
}

static bool is_ignored(const struct sigaction *action) {
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_IGN;
}

static bool is_default(const struct sigaction *action) {
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
}

static int own_pid; /* getpid() is a system call */

/* A child of vfork() has its own signals, but our memory is its parent's: subprocess takes all handlers back there. */
static bool is_vforked(void) { return own_pid != getpid(); }

EXPORT int sigaction(int signal_number, const struct sigaction *action, struct sigaction *before) {
    if (!area || !is_fatal(signal_number)) return NEXT(sigaction)(signal_number, action, before);
    struct sigaction old = *wanted_action(signal_number);
    if (action && is_vforked()) {
        if (NEXT(sigaction)(signal_number, action, NULL)) return -1;
    } else if (action) {
        struct sigaction copy = *action;
        /* An ignored signal must not interrupt system calls, so the kernel has to know. */
        int failed = is_ignored(&copy) ? NEXT(sigaction)(signal_number, &copy, NULL)
                                       : install_handler(signal_number, copy.sa_flags & SA_RESTART);
        if (failed) return failed;
        old = *want_action(signal_number, &copy);
    }
    if (before) *before = old;
    return 0;
}

static sighandler_t simple_signal(int signal_number, sighandler_t handler, int flags) {
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    return sigaction(signal_number, &action, &before) ? SIG_ERR : before.sa_handler;
}

EXPORT sighandler_t signal(int signal_number, sighandler_t handler) {
    if (!area || !is_fatal(signal_number)) return NEXT(signal)(signal_number, handler);
    return simple_signal(signal_number, handler, SA_RESTART);
}

EXPORT sighandler_t sysv_signal(int signal_number, sighandler_t handler) {
    if (!area || !is_fatal(signal_number)) return NEXT(sysv_signal)(signal_number, handler);
    return simple_signal(signal_number, handler, SA_RESETHAND | SA_NODEFER);
}

/* ------------------------------------------------------------------------------------ the fatal signal */

/* A fault that a handler of the program is working on, on this thread. */
static __thread INITIAL_EXEC struct {
    const char *handler_frame; /* NULL: none */
    struct fl_fault fault;
} pending;

static uint32_t crashing_thread; /* the thread whose crash is being reported; 0: none */
static struct fl_slot *crash_slot;

static void fill_fault(struct fl_fault *fault, int signal_number, const siginfo_t *info, const ucontext_t *context) {
    fault->pid = getpid();
    fault->tid = thread_id();
    fault->time_ns = now_ns();
    fault->signal = signal_number;
    fault->chained = 0;
    memcpy(fault->siginfo, info, sizeof fault->siginfo);
    memcpy(fault->gregs, context->uc_mcontext.gregs, sizeof fault->gregs);
}

/* Is this signal raised from within the handler of the program that works on `pending`? Handlers that left by
 * longjmp leave `pending` behind; the stack pointer tells. */
static bool inside_pending_handler(const ucontext_t *context) {
    if (!pending.handler_frame) return false;
    const char *stack_pointer = (const char *)context->uc_mcontext.gregs[REG_RSP];
    stack_t alternate;
    if (sigaltstack(NULL, &alternate) == 0 && !(alternate.ss_flags & SS_DISABLE)) {
        const char *low = alternate.ss_sp, *high = low + alternate.ss_size;
        if (pending.handler_frame >= low && pending.handler_frame < high)
            return stack_pointer >= low && stack_pointer < pending.handler_frame;
    }
    return stack_pointer < pending.handler_frame && pending.handler_frame - stack_pointer < (1 << 20);
}

/* Run the program's handler as the kernel would have: its mask, its flags. */
static void run_handler(const struct sigaction *action, int signal_number, siginfo_t *info, ucontext_t *context) {
    struct sigaction copy = *action;
    char frame;
    if (!inside_pending_handler(context)) {
        fill_fault(&pending.fault, signal_number, info, context);
        pending.fault.chained = 1;
        pending.handler_frame = &frame;
    }
    struct fl_handled *handled = &area->handled[pending.fault.pid % FL_HANDLED];
    handled->fault = pending.fault;
    __atomic_fetch_add(&handled->count, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&handled->active, 1, __ATOMIC_RELEASE);

    if (copy.sa_flags & SA_RESETHAND) want_action(signal_number, &default_action);
    sigset_t mask = context->uc_sigmask;
    for (int s = 1; s < NSIG; s++)
        if (sigismember(&copy.sa_mask, s) == 1) sigaddset(&mask, s);
    if (!(copy.sa_flags & SA_NODEFER)) sigaddset(&mask, signal_number);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);

    if (copy.sa_flags & SA_SIGINFO)
        copy.sa_sigaction(signal_number, info, context);
    else
        copy.sa_handler(signal_number);

    if (pending.handler_frame == &frame) {
        pending.handler_frame = NULL;
        __atomic_store_n(&handled->active, 0, __ATOMIC_RELEASE);
    }
}

static struct fl_slot *claim_slot(void) {
    for (int i = 0; i < FL_SLOTS; i++) {
        uint32_t expected = FL_FREE;
        if (__atomic_compare_exchange_n(&area->slots[i].state, &expected, FL_CLAIMED, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return &area->slots[i];
    }
    return NULL;
}

static long futex(uint32_t *word, int operation, uint32_t value, const struct timespec *timeout) {
    return kernel(SYS_futex, (long)word, operation, value, (long)timeout, 0, 0);
}

/* Wait while the slot has this state, for a limited time. */
static void wait_while(struct fl_slot *slot, uint32_t state, uint32_t limit_ms) {
    int64_t end = now_ns() + limit_ms * 1000000ll;
    while (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == state && now_ns() < end) {
        struct timespec step = {0, 100 * 1000 * 1000};
        futex(&slot->state, FUTEX_WAIT, state, &step);
        if (kill(area->supervisor_pid, 0) && errno == ESRCH) return;
    }
}

static void copy_exceptions(struct fl_slot *slot);

static void tell_supervisor(struct fl_slot *slot) {
    copy_exceptions(slot);
    prctl(PR_SET_PTRACER, area->supervisor_pid, 0, 0, 0);
    __atomic_store_n(&slot->state, FL_WAITING, __ATOMIC_RELEASE);
    __atomic_fetch_add(&area->wake, 1, __ATOMIC_ACQ_REL);
    futex(&area->wake, FUTEX_WAKE, INT32_MAX, NULL);
    wait_while(slot, FL_WAITING, area->accept_ms);
    wait_while(slot, FL_ACCEPTED, area->finish_ms);
}

/* Another thread is being reported already: leave a note and wait for the end of the process. */
static void __attribute__((noreturn)) join_crash(int signal_number, siginfo_t *info, ucontext_t *context) {
    struct fl_slot *slot = __atomic_load_n(&crash_slot, __ATOMIC_ACQUIRE);
    if (slot) {
        uint32_t index = __atomic_fetch_add(&slot->also_count, 1, __ATOMIC_ACQ_REL);
        if (index < FL_ALSO) fill_fault(&slot->also[index], signal_number, info, context);
    }
    for (;;) pause();
}

static siginfo_t last_info; /* of the crash, for the second try below */
static int last_signal;

static void send_again(void) {
    int pid = getpid(), tid = thread_id();
    if (kernel(SYS_rt_tgsigqueueinfo, pid, tid, last_signal, (long)&last_info, 0, 0))
        kernel(SYS_tgkill, pid, tid, last_signal, 0, 0, 0);
}

/* The faulting instruction went through the second time: without the agent the program would be dead. */
static void HANDLER on_survival(int signal_number, siginfo_t *info, void *context) {
    (void)signal_number, (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100ll;
    send_again();
}

#define TRAP_FLAG 0x100 /* of the flags register: stop after one instruction */

/* Let the signal happen again, now with its default action. A true fault is repeated by its instruction, so
 * that the kernel log and the core file are those of the fault itself; other signals are sent again as they
 * came. */
static void let_it_happen(int signal_number, siginfo_t *info, ucontext_t *context) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    NEXT(sigaction)(signal_number, &action, NULL);
    last_info = *info;
    last_signal = signal_number;
    /* It came in sigsuspend(), perhaps, and would be blocked again where the handler returns to. */
    sigdelset(&context->uc_sigmask, signal_number);
    /* A breakpoint or a forbidden system call lies behind the program already: it would go on. */
    if (info->si_code <= 0 || signal_number == SIGTRAP || signal_number == SIGSYS) {
        send_again();
        return;
    }
    if (signal_number != SIGSEGV && signal_number != SIGBUS) return; /* only memory can be mended meanwhile */
    action.sa_sigaction = on_survival;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    NEXT(sigaction)(SIGTRAP, &action, NULL);
    sigdelset(&context->uc_sigmask, SIGTRAP);
    context->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void HANDLER on_fatal_signal(int signal_number, siginfo_t *info, void *raw_context) {
    int saved_errno = errno;
    ucontext_t *context = raw_context;
    const struct sigaction *action = wanted_action(signal_number);
    if (!is_default(action) && !is_ignored(action)) {
        run_handler(action, signal_number, info, context);
        errno = saved_errno;
        return;
    }
    uint32_t nobody = 0, self = (uint32_t)thread_id();
    if (!__atomic_compare_exchange_n(&crashing_thread, &nobody, self, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) &&
        nobody != self)
        join_crash(signal_number, info, context);
    struct fl_slot *slot = nobody == self ? NULL : claim_slot();
    if (slot) {
        slot->also_count = slot->exception_count = 0;
        if (inside_pending_handler(context))
            slot->fault = pending.fault;
        else
            fill_fault(&slot->fault, signal_number, info, context);
        __atomic_store_n(&crash_slot, slot, __ATOMIC_RELEASE);
        tell_supervisor(slot);
    }
    let_it_happen(signal_number, info, context);
    errno = saved_errno;
}

/* -------------------------------------------------------- an alternate stack for every thread that starts */

static size_t alternate_stack_size(void) {
    return 65536 + getauxval(AT_MINSIGSTKSZ); /* vector registers make signal frames large */
}

static void *give_alternate_stack(void) {
    stack_t stack;
    if (sigaltstack(NULL, &stack) || !(stack.ss_flags & SS_DISABLE)) return NULL; /* it has one */
    size_t size = alternate_stack_size();
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    stack = (stack_t){.ss_sp = memory, .ss_size = size};
    if (sigaltstack(&stack, NULL) == 0) return memory;
    munmap(memory, size);
    return NULL;
}

static void take_alternate_stack(void *memory) {
    stack_t stack;
    if (sigaltstack(NULL, &stack) == 0 && stack.ss_sp == memory) {
        stack.ss_flags = SS_DISABLE;
        sigaltstack(&stack, NULL);
    }
    munmap(memory, alternate_stack_size());
}

static pthread_key_t alternate_stack_key; /* its destructor takes the stack back when the thread ends */

struct thread_start {
    void *(*function)(void *);
    void *argument;
};

/* Ends in a tail call: no frame of ours remains on the thread's stack for anybody to see. */
static void *begin_thread(void *raw) {
    struct thread_start *start = raw;
    void *(*function)(void *) = start->function;
    void *argument = start->argument;
    free(start);
    void *stack = give_alternate_stack();
    if (stack && pthread_setspecific(alternate_stack_key, stack)) take_alternate_stack(stack);
    return function(argument);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                          void *argument) {
    struct thread_start *start = area ? malloc(sizeof *start) : NULL;
    if (!start) return NEXT(pthread_create)(thread, attributes, function, argument);
    *start = (struct thread_start){function, argument};
    int failed = NEXT(pthread_create)(thread, attributes, begin_thread, start);
    if (failed) free(start);
    return failed;
}

/* ----------------------------------------------------------------------- the last C++ exceptions thrown */

/* Few exceptions per lane, lanes by thread: a thread that throws in a loop does not push out the others'. */
#define LANES 32
#define LANE_DEPTH 4
static struct fl_exception thrown[LANES][LANE_DEPTH];
static uint32_t thrown_next[LANES];

typedef void throw_function(void *object, void *type, void (*destructor)(void *));
typedef _Unwind_Reason_Code backtrace_function(_Unwind_Trace_Fn, void *);

struct cxx_runtime { /* the C++ runtime that a caller uses; a process can hold several */
    throw_function *throw_exception;
    backtrace_function *backtrace;
    const void *one_base_vtable; /* marks the type information of classes with one base */
};

struct object_search {
    uintptr_t address;
    const char *name; /* of the object that holds the address */
    bool found;
};

static int match_object(struct dl_phdr_info *info, size_t size, void *raw) {
    (void)size;
    struct object_search *search = raw;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && search->address >= start &&
            search->address < start + info->dlpi_phdr[i].p_memsz) {
            search->name = info->dlpi_name;
            return search->found = true;
        }
    }
    return 0;
}

EXPORT void __cxa_throw(void *object, void *type, void (*destructor)(void *));

static bool take_runtime(struct cxx_runtime *runtime, void *handle) {
    if (!handle) return false;
    throw_function *found = (throw_function *)dlsym(handle, "__cxa_throw");
    if (!found || found == &__cxa_throw) return false;
    runtime->throw_exception = found;
    runtime->backtrace = (backtrace_function *)dlsym(handle, "_Unwind_Backtrace");
    const char *vtable = dlsym(handle, "_ZTVN10__cxxabiv120__si_class_type_infoE");
    runtime->one_base_vtable = vtable ? vtable + 2 * sizeof(void *) : NULL;
    return true;
}

static int try_object(struct dl_phdr_info *info, size_t size, void *raw) {
    (void)size;
    if (!info->dlpi_name || !*info->dlpi_name) return 0;
    void *handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    bool taken = take_runtime(raw, handle);
    if (handle) dlclose(handle);
    return taken;
}

/* Python loads libraries into scopes of their own, so RTLD_NEXT need not see libstdc++: ask the caller's. */
static void find_runtime(struct cxx_runtime *runtime, void *caller) {
    if (take_runtime(runtime, RTLD_NEXT)) return;
    struct object_search search = {.address = (uintptr_t)caller};
    dl_iterate_phdr(match_object, &search);
    if (search.found && *search.name) {
        void *handle = dlopen(search.name, RTLD_LAZY | RTLD_NOLOAD);
        bool taken = take_runtime(runtime, handle);
        if (handle) dlclose(handle);
        if (taken) return;
    }
    dl_iterate_phdr(try_object, runtime);
}

struct frame_list {
    uint64_t *frames;
    uint32_t count;
};

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *raw) {
    struct frame_list *list = raw;
    uint64_t address = _Unwind_GetIP(context);
    if (list->count == FL_THROW_FRAMES || !address) return _URC_END_OF_STACK;
    list->frames[list->count++] = address;
    return _URC_NO_REASON;
}

/* Type information of the Itanium C++ ABI: { vtable, name, then, for a class with one base, that base }. */
struct type_info {
    const void *vtable;
    const char *name;
    const struct type_info *base;
};

/* The text of exceptions that derive from std::runtime_error or std::logic_error, which keep it behind their
 * vtable pointer. what() is not called: it is foreign code and may do anything. */
static const char *exception_text(const struct type_info *type, void *object, const void *one_base_vtable) {
    for (int depth = 0; type && depth < 8; depth++) {
        if (!strcmp(type->name, "St13runtime_error") || !strcmp(type->name, "St11logic_error"))
            return *(const char **)((char *)object + sizeof(void *));
        if (!one_base_vtable || type->vtable != one_base_vtable) return NULL;
        type = type->base;
    }
    return NULL;
}

/* Walking the stack is what costs: places that throw all the time are spared it. */
#define THROWS_WITH_FRAMES 256

static void remember_exception(const struct cxx_runtime *runtime, void *object, const struct type_info *type, void *caller,
                               uint32_t thrown_here) {
    uint32_t tid = (uint32_t)thread_id(), lane = tid % LANES;
    uint32_t index = __atomic_fetch_add(&thrown_next[lane], 1, __ATOMIC_RELAXED) % LANE_DEPTH;
    struct fl_exception *entry = &thrown[lane][index];
    entry->tid = (int32_t)tid;
    entry->time_ns = now_ns();
    strncpy(entry->type, type->name, sizeof entry->type - 1);
    const char *text = exception_text(type, object, runtime->one_base_vtable);
    strncpy(entry->message, text ? text : "", sizeof entry->message - 1);
    struct frame_list list = {entry->frames, 0};
    if (runtime->backtrace && thrown_here < THROWS_WITH_FRAMES)
        runtime->backtrace(add_frame, &list);
    else
        list.frames[list.count++] = (uint64_t)caller;
    entry->frame_count = list.count;
}

EXPORT void __cxa_throw(void *object, void *type, void (*destructor)(void *)) {
    static __thread INITIAL_EXEC struct {
        void *caller;
        uint32_t count;
        struct cxx_runtime runtime;
    } known[8]; /* throwing places of this thread */
    void *caller = __builtin_return_address(0);
    __typeof__(*known) *entry = &known[((uintptr_t)caller >> 4) % 8];
    if (entry->caller != caller) {
        entry->runtime = (struct cxx_runtime){NULL, NULL, NULL};
        find_runtime(&entry->runtime, caller);
        entry->caller = caller;
        entry->count = 0;
    }
    if (area && type) remember_exception(&entry->runtime, object, type, caller, entry->count++);
    if (entry->runtime.throw_exception) entry->runtime.throw_exception(object, type, destructor);
    abort(); /* whoever threw was linked against a runtime: not reached */
}

static void copy_exceptions(struct fl_slot *slot) {
    uint32_t count = 0;
    int64_t before = INT64_MAX;
    while (count < FL_EXCEPTIONS) {
        const struct fl_exception *latest = NULL;
        for (int lane = 0; lane < LANES; lane++)
            for (int i = 0; i < LANE_DEPTH; i++) {
                const struct fl_exception *entry = &thrown[lane][i];
                if (entry->time_ns && entry->time_ns < before && (!latest || entry->time_ns > latest->time_ns))
                    latest = entry;
            }
        if (!latest) break;
        before = latest->time_ns;
        slot->exceptions[count++] = *latest;
    }
    slot->exception_count = count;
}

/* ------------------------------------------------------------------- the tail of what the program prints */

static void put_bytes(uint64_t position, const void *bytes, size_t size) {
    size_t at = position % FL_OUTPUT_BYTES, first = FL_OUTPUT_BYTES - at;
    if (first > size) first = size;
    memcpy(area->output + at, bytes, first);
    memcpy(area->output, (const char *)bytes + first, size - first);
}


static void remember_output(int descriptor, const void *bytes, ssize_t size) {
    if (!area || size <= 0) return;
    if (size > FL_OUTPUT_MAX) {
        bytes = (const char *)bytes + (size - FL_OUTPUT_MAX);
        size = FL_OUTPUT_MAX;
    }
    struct fl_output header = {own_pid, (int16_t)descriptor, FL_OUTPUT_MAGIC, (uint32_t)size, 0};
    uint64_t room = (sizeof header + (uint64_t)size + 7) & ~7ull;
    uint64_t position = __atomic_fetch_add(&area->output_head, room, __ATOMIC_RELAXED);
    put_bytes(position, &header, sizeof header);
    put_bytes(position + sizeof header, bytes, (size_t)size);
}

static bool is_output(int descriptor) { return descriptor == STDOUT_FILENO || descriptor == STDERR_FILENO; }

EXPORT ssize_t write(int descriptor, const void *bytes, size_t size) {
    ssize_t written = NEXT(write)(descriptor, bytes, size);
    if (is_output(descriptor)) remember_output(descriptor, bytes, written);
    look_if_asked(area);
    return written;
}

EXPORT ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    ssize_t written = NEXT(writev)(descriptor, parts, count), left = written;
    if (is_output(descriptor))
        for (int i = 0; i < count && left > 0; left -= (ssize_t)parts[i++].iov_len)
            remember_output(descriptor, parts[i].iov_base,
                            left < (ssize_t)parts[i].iov_len ? left : (ssize_t)parts[i].iov_len);
    return written;
}

/* abseil, and with it TensorFlow, writes its fatal messages through syscall(). */
EXPORT long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
    long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    long result = NEXT(syscall)(number, a, b, c, d, e, f);
    if (number == SYS_write && is_output((int)a)) remember_output((int)a, (const void *)b, result);
    look_if_asked(area);
    return result;
}

/* stdio calls the kernel from inside the C library, where nothing can be put in between. */
EXPORT size_t fwrite(const void *bytes, size_t size, size_t count, FILE *stream) {
    size_t written = NEXT(fwrite)(bytes, size, count, stream);
    if (stream == stderr) remember_output(STDERR_FILENO, bytes, (ssize_t)(size * written));
    return written;
}

EXPORT int fputs(const char *text, FILE *stream) {
    int result = NEXT(fputs)(text, stream);
    if (stream == stderr && result >= 0) remember_output(STDERR_FILENO, text, (ssize_t)strlen(text));
    return result;
}

static int put_character(int result, int character, FILE *stream) {
    char byte = (char)character;
    if (stream == stderr && result != EOF) remember_output(STDERR_FILENO, &byte, 1);
    return result;
}

EXPORT int fputc(int character, FILE *stream) {
    return put_character(NEXT(fputc)(character, stream), character, stream);
}

EXPORT int putc(int character, FILE *stream) {
    return put_character(NEXT(putc)(character, stream), character, stream);
}

static void remember_formatted(FILE *stream, const char *format, va_list arguments) {
    if (!area || stream != stderr) return;
    char text[1024];
    int size = vsnprintf(text, sizeof text, format, arguments);
    remember_output(STDERR_FILENO, text, size < (int)sizeof text ? size : (int)sizeof text - 1);
}

EXPORT int vfprintf(FILE *stream, const char *format, va_list arguments) {
    va_list copy;
    va_copy(copy, arguments);
    remember_formatted(stream, format, copy);
    va_end(copy);
    return NEXT(vfprintf)(stream, format, arguments);
}

EXPORT int fprintf(FILE *stream, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int result = vfprintf(stream, format, arguments);
    va_end(arguments);
    return result;
}

EXPORT int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list arguments) {
    va_list copy;
    va_copy(copy, arguments);
    remember_formatted(stream, format, copy);
    va_end(copy);
    return NEXT(__vfprintf_chk)(stream, flag, format, arguments);
}

EXPORT int __fprintf_chk(FILE *stream, int flag, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int result = __vfprintf_chk(stream, flag, format, arguments);
    va_end(arguments);
    return result;
}

/* ---------------------------------------------------------------------------- modules that Python imports */

/* What is not passed is read as garbage and ignored, as the C library itself does without O_CREAT. */
#define WRAP_OPEN(name)                                \
    EXPORT int name(const char *path, int flags, ...) { \
        va_list list;                                  \
        va_start(list, flags);                         \
        mode_t mode = va_arg(list, mode_t);            \
        va_end(list);                                  \
        if (area) before_open(area, path);             \
        look_if_asked(area);                           \
        return NEXT(name)(path, flags, mode);          \
    }

WRAP_OPEN(open)
WRAP_OPEN(open64)

/* ------------------------------------------------------------------------------------------------ start */

/* A program may start another one with an environment of its own making (env LD_PRELOAD=…, env -i): the agent goes
 * along. Nothing is allocated and nothing of the program changed: this may run between vfork and exec. */
static char agent_path[4096];
static char area_entry[256]; /* "FAULTLENS_AGENT=<path>" */
static int only_this;        /* the process whose children are spared; 0: all are watched */

#define ADDED_ENTRIES 4 /* LD_PRELOAD, FAULTLENS_AGENT, FAULTLENS_ONLY_THIS, NULL */

static const char *variable(char *const *environment, const char *name) {
    size_t length = strlen(name);
    for (; environment && *environment; environment++)
        if (!strncmp(*environment, name, length) && (*environment)[length] == '=') return *environment + length + 1;
    return NULL;
}

/* How many entries to make room for; 0: the environment is good as it is. */
static size_t room_needed(char *const *environment, bool for_child) {
    if (!area || !*agent_path || (only_this && (for_child || only_this != getpid()))) return 0;
    const char *preload = variable(environment, "LD_PRELOAD");
    if (preload && strstr(preload, AGENT_FILE) && variable(environment, "FAULTLENS_AGENT")) return 0;
    size_t count = 0;
    while (environment && environment[count]) count++;
    return count + ADDED_ENTRIES;
}

static char *const *add_agent(char *const *environment, char **room, char *preload, size_t preload_size) {
    const char *before = variable(environment, "LD_PRELOAD");
    if (before && (!*before || strstr(before, AGENT_FILE))) before = NULL;
    int length = snprintf(preload, preload_size, "LD_PRELOAD=%s%s%s", before ? before : "", before ? ":" : "", agent_path);
    if ((size_t)length >= preload_size) return environment;
    size_t count = 0;
    for (; environment && *environment; environment++)
        if (strncmp(*environment, "LD_PRELOAD=", 11) && strncmp(*environment, "FAULTLENS_AGENT=", 16))
            room[count++] = *environment;
    room[count++] = preload;
    room[count++] = area_entry;
    if (only_this) room[count++] = (char *)"FAULTLENS_ONLY_THIS=1";
    room[count] = NULL;
    return room;
}

#define WITH_AGENT(environment, for_child)                       \
    size_t needed_ = room_needed(environment, for_child);        \
    char *room_[needed_ + 1], preload_[needed_ ? 4096 : 1];      \
    char *const *extended = needed_ ? add_agent(environment, room_, preload_, sizeof preload_) : environment

EXPORT int execve(const char *path, char *const *arguments, char *const *environment) {
    WITH_AGENT(environment, false);
    return NEXT(execve)(path, arguments, extended);
}

EXPORT int execvpe(const char *file, char *const *arguments, char *const *environment) {
    WITH_AGENT(environment, false);
    return NEXT(execvpe)(file, arguments, extended);
}

EXPORT int execv(const char *path, char *const *arguments) { return execve(path, arguments, environ); }
EXPORT int execvp(const char *file, char *const *arguments) { return execvpe(file, arguments, environ); }

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const *arguments, char *const *environment) {
    WITH_AGENT(environment, true);
    return NEXT(posix_spawn)(pid, path, actions, attributes, arguments, extended);
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const *arguments, char *const *environment) {
    WITH_AGENT(environment, true);
    return NEXT(posix_spawnp)(pid, file, actions, attributes, arguments, extended);
}

static void remember_for_exec(const char *area_path) {
    Dl_info self;
    if (!dladdr((void *)remember_for_exec, &self) || !self.dli_fname) return;
    snprintf(agent_path, sizeof agent_path, "%s", self.dli_fname);
    snprintf(area_entry, sizeof area_entry, "FAULTLENS_AGENT=%s", area_path);
}

/* Children that are started from here on are spared of the agent. */
static void hide_from_children(void) {
    const char *preload = getenv("LD_PRELOAD");
    unsetenv("FAULTLENS_AGENT");
    if (!preload) return;
    char kept[4096] = "";
    size_t used = 0;
    for (const char *p = preload; *p;) {
        size_t length = strcspn(p, ": ");
        bool ours = length >= strlen(AGENT_FILE) &&
                    !strncmp(p + length - strlen(AGENT_FILE), AGENT_FILE, strlen(AGENT_FILE));
        if (length && !ours && used + length + 2 < sizeof kept) {
            if (used) kept[used++] = ':';
            memcpy(kept + used, p, length);
            kept[used += length] = 0;
        }
        p += length + (p[length] != 0);
    }
    if (used)
        setenv("LD_PRELOAD", kept, 1);
    else
        unsetenv("LD_PRELOAD");
}

static void begin_forked_child(void) {
    own_pid = getpid();
    __atomic_store_n(&crashing_thread, 0, __ATOMIC_RELEASE);
    take_own_progress(area);
}

static void __attribute__((constructor)) start_agent(void) {
    find_next_functions();
    const char *path = getenv("FAULTLENS_AGENT");
    if (!path) return;
    int saved_errno = errno;
    int file = open(path, O_RDWR | O_CLOEXEC);
    void *memory = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *area, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    if (memory != MAP_FAILED) {
        struct fl_area *found = memory;
        if (found->magic == FL_MAGIC && found->version == FL_VERSION) {
            for (size_t i = 0; i < FATAL_COUNT; i++) {
                struct sigaction before;
                if (NEXT(sigaction)(fatal_signals[i], NULL, &before) || is_ignored(&before)) continue;
                want_action(fatal_signals[i], &before);
                install_handler(fatal_signals[i], before.sa_flags & SA_RESTART);
            }
            give_alternate_stack();
            pthread_atfork(NULL, NULL, begin_forked_child);
            own_pid = getpid();
            __atomic_fetch_add(&found->attached, 1, __ATOMIC_RELAXED);
            if (pthread_key_create(&alternate_stack_key, take_alternate_stack) == 0) area = found;
        } else {
            munmap(memory, sizeof *area);
        }
    }
    remember_for_exec(path);
    if (getenv("FAULTLENS_ONLY_THIS")) {
        only_this = getpid();
        unsetenv("FAULTLENS_ONLY_THIS");
        hide_from_children();
    }
    errno = saved_errno;
}
