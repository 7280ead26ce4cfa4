/* What the parts of the agent share. Each has a file of its own:
 *
 *   actions.c   what the program wants of fatal signals, kept by the kernel; where its handlers run
 *   crash.c     a fatal signal that nobody handles: all threads stand still, the supervisor is told
 *   stacks.c    an alternate stack for every thread
 *   filters.c   seccomp filters and debuggers: where a report would change the ending
 *   throws.c    the last C++ exceptions
 *   defined.c   what the loaded objects define
 *   output.c    the tail of what the program prints
 *   exec.c      programs that this one starts
 *   loadable.c  whether the agent can be loaded into a program
 *   inside.c    Python code of ours in Python programs
 *   agent.c     the start
 *   installed.c the other start: faultlens.install(), in a program that runs already
 */
#ifndef FAULTLENS_PARTS_H
#define FAULTLENS_PARTS_H

#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* programs call them all the same */

#define EXPORT __attribute__((visibility("default")))
#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))

extern struct fl_area *area; /* NULL: not supervised, everything is passed through */
extern int own_pid;          /* getpid() is a system call; children of vfork and clone share or copy it */

/* The functions that ours stand in front of. Looked up by the constructor, not on first use: dlsym() frees the
 * text of dlerror(), which the program may be about to print. */
#define WRAPPED(X)                                                                                                  \
    X(sigaction) X(signal) X(sysv_signal) X(sigset) X(siginterrupt) X(sigaltstack) X(pthread_create) X(write)       \
    X(writev) X(syscall) X(prctl) X(ptrace) X(_exit) X(_Fork) X(fwrite) X(fputs) X(fputc) X(putc) X(vfprintf)                 \
    X(__vfprintf_chk) X(longjmp) X(_longjmp) X(siglongjmp) X(__longjmp_chk) X(execve) X(execvpe) X(posix_spawn) X(posix_spawnp) X(open) X(open64)      \
    X(clock_gettime) X(abort)

extern int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list arguments);
extern void __longjmp_chk(struct __jmp_buf_tag to[1], int value) __attribute__((noreturn));
extern pid_t _Fork(void); /* the C library has it since 2.34 */
#undef putc

struct next_functions {
#define DECLARE(name) __typeof__(&name) name;
    WRAPPED(DECLARE)
};
extern struct next_functions next_functions;
void find_next_functions(void);

/* Other preloaded libraries may call us before our constructor has run. */
#define NEXT(name) ({ if (!next_functions.name) find_next_functions(); next_functions.name; })

/* The kernel itself, past the C library: no errno, no cancellation, nothing of ours in between, and no function of the
 * program's that happens to have the same name. Returns -errno. */
static inline long kernel(long number, long a, long b, long c, long d, long e, long f) {
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

/* Asked of the kernel, which does not fault: it reads the mask before it finds that there is nothing to do with it. */
static inline bool is_readable(const void *address) {
    return kernel(SYS_rt_sigprocmask, -1, (long)address & ~7l, 0, sizeof(uint64_t), 0, 0) != -EFAULT;
}

static inline int thread_id(void) { return (int)kernel(SYS_gettid, 0, 0, 0, 0, 0, 0); }
static inline int process_id(void) { return (int)kernel(SYS_getpid, 0, 0, 0, 0, 0, 0); }
int64_t now_ns(void);

static const int fatal_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
#define FATAL_COUNT (sizeof fatal_signals / sizeof *fatal_signals)

/* The C library keeps this signal for itself and lets nobody block it (SIGSETXID: setuid() in all threads). We use it
 * for a moment at the start, and when the process is about to end. */
#define OUR_SIGNAL 33

/* actions.c */
struct kernel_action { /* struct kernel_sigaction: what rt_sigaction(2) takes */
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};
long kernel_action(int signal_number, const struct kernel_action *action, struct kernel_action *before);
extern void *restorer; /* the C library's way back from a handler */
#ifndef SA_RESTORER
#define SA_RESTORER 0x04000000
#endif
void learn_restorer(void);
void cover_default_actions(void);
extern bool stands_aside; /* crashes are not reported: the program's actions go to the kernel as they are */
void step_aside(void); /* in a child of vfork(), for itself alone */
void step_in_again(void);
void note_end_in_handler(void);
void tell_wishes(void);
void regain_own_stack(void);

void fill_fault(struct fl_fault *fault, int signal_number, const siginfo_t *info, const ucontext_t *context);

/* crash.c */
/* `first`: the fault that led to it, if a handler of the program raised the signal. */
void report_crash(int signal_number, siginfo_t *info, ucontext_t *context, const struct fl_fault *first, int dies_by);
void report_abort(siginfo_t *info, ucontext_t *context, const struct fl_fault *first);
void hold_if_crashing(void);
void look_for_supervisor(void);
struct fl_slot *claim_slot(void); /* NULL: too many crash at once */
void tell_supervisor(struct fl_slot *slot); /* returns when it has looked */

/* agent.c */
struct fl_area *open_area(const char *path);

/* stacks.c */
extern pthread_key_t own_stack_key;
extern __thread INITIAL_EXEC char *own_stack; /* the lowest byte of this thread's alternate stack of ours; NULL: none */
extern __thread INITIAL_EXEC int shown_stack_flags; /* what the thread would show without it in struct ucontext */
extern __thread INITIAL_EXEC bool is_own_stack_lost; /* with the return of a handler */
void learn_shown_stack(void);
void give_own_stack(void);
void drop_own_stack(void);
void end_own_stack(void *stack);
extern bool is_own_stack_adopted;
void note_who_sets_handlers(const void *caller);

/* Called at places that every thread comes by; nearly always this is all. */
static inline void keep_own_stack(void) {
    if (__builtin_expect(is_own_stack_lost, 0)) regain_own_stack();
}

/* throws.c */
void find_first_runtime(void);
void copy_exceptions(struct fl_slot *slot);

/* defined.c */
struct dl_phdr_info;
void *defined_in(const struct dl_phdr_info *info, const char *name); /* in this object; NULL: it does not */

/* filters.c */
long seccomp_call(long operation, long flags, long program);
bool is_traced(void);
bool has_shadow_stack(void);

/* exec.c, loadable.c */
void remember_for_exec(const char *area_path);
void spare_children(void);
enum fl_loadable loadable_into(const char *path);
void remember_own_loader(void);

#endif
