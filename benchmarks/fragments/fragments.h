/* Pieces of which hostile programs are composed; benchmarks/grammar.py reads this file and the sources beside it.
 *
 * A function marked FRAGMENT may stand in a generated program. Its parameters say what may be chosen for them: an enum
 * below, one of the types below, or `body`: more fragments. One marked ENDING ends the process, one marked RARE is
 * chosen seldom, because it takes long. */
#ifndef FRAGMENTS_H
#define FRAGMENTS_H
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define FRAGMENT __attribute__((noinline)) void
#define ENDING __attribute__((noinline)) void
#define RARE __attribute__((noinline)) void

typedef int fault_signal; /* a signal that the CPU or the kernel sends for a mistake */
typedef int any_signal;   /* that, or one that others send */
typedef int action_flags; /* SA_ONSTACK | ... */
typedef int stack_size;   /* of an alternate stack or of a thread */
typedef int count;
typedef int status; /* of exit */
typedef void (*body)(void);

/* Ways to be stopped by the CPU. */
enum fault {
    WRITE_NULL,
    READ_NULL,
    CALL_NULL,
    READ_WILD,
    WRITE_READ_ONLY,
    READ_NO_ACCESS,
    CALL_DATA,
    READ_TRUNCATED,
    DIVIDE,
    DIVIDE_FLOAT,
    ILLEGAL,
    BREAKPOINT,
    PRIVILEGED,
    MISALIGNED_VECTOR,
    MISALIGNED_CHECKED,
    WITHOUT_STACK,
};

/* What a handler does after it has said what it sees. */
enum answer {
    RETURN,
    REPAIR,
    JUMP,
    RERAISE,
    RERAISE_BY_KILL,
    RETURN_TO_DEFAULT,
    ABORT,
    LEAVE,
    EXIT,
    FAULT_AGAIN,
    USE_MUCH_STACK,
    END_THREAD,
    SET_CONTEXT,
    UNBLOCK_AND_REPAIR,
    UNWIND,
    RAISE_SAME,
};

/* The functions that set a handler. */
enum setter { SIGACTION, SIGNAL, BSD_SIGNAL, SYSV_SIGNAL, SIGSET, RAW_SIGACTION };

/* The ways to send a signal to oneself. */
enum sender { RAISE, KILL, TGKILL, PTHREAD_KILL, SIGQUEUE, TGSIGQUEUE, FORGED, FROM_CHILD, FROM_THREAD, KILL_GROUP };

/* The ways to get a child. */
enum maker { FORK, BARE_FORK, VFORK, CLONE, CLONE3, CLONE_ON_STACK, CLONE_SHARED };

/* processes.c */
enum environment { SAME_ENVIRONMENT, NO_ENVIRONMENT, OWN_PRELOAD, WITHOUT_PRELOAD };
enum executor { EXECVE, EXECV, EXECL, FEXECVE, EXECVEAT, EXECVPE, RAW_EXECVE };
enum spawner { POSIX_SPAWN, POSIX_SPAWNP, SPAWN_RESETTING, SYSTEM, POPEN };
enum stage { STAGE_ASK, STAGE_CRASH, STAGE_RECOVER, STAGE_EXIT, STAGE_ABORT, STAGE_TERM };

/* waiting.c */
enum waiter { SIGWAIT, SIGWAITINFO, SIGTIMEDWAIT, SIGNALFD, SIGSUSPEND };
enum sleeper { READ, POLL, SELECT, EPOLL, SEMAPHORE, NANOSLEEP, WAITPID, FUTEX_JOIN, PAUSE };
enum alarm { ALARM, ITIMER_OF_TIME, ITIMER_OF_CPU, TIMER_WITH_VALUE, TIMER_OF_THREAD };

/* threads.c */
enum leaver { BY_EXIT, BY_UNDERSCORE_EXIT, BY_QUICK_EXIT, BY_EXIT_GROUP, BY_ABORT, BY_SIGNAL };

/* surroundings.c */
enum limit { FILES, FILES_AND_CLOSED, STACK, ADDRESS_SPACE, PROCESSES, PENDING_SIGNALS, CORE, MEMORY_LOCKED, DATA };

/* support.c */
/* The kernel does not put SS_DISABLE back when a program with an alternate stack executes another. */
extern int executed;
void say(const char *format, ...); /* %d int, %x unsigned long, %s; one write, safe in handlers */
void say_mask(const char *what);
void say_status(const char *what, int status);
void say_action(int number);
void set_handler(enum setter, int number, int flags, enum answer, body);
void send_signal(enum sender, int number);
void milliseconds(int);
pid_t make_child(enum maker, body);

/* Never kill(-1): that would be everybody. */
static inline void kill_child(pid_t child, int number) {
    if (child > 0) kill(child, number);
}

/* The C library reads what is not aligned; behind MISALIGNED_CHECKED that would be a fault. */
static inline void clear_alignment_check(void) {
    __asm__ volatile("pushf\nandl $~0x40000, (%%rsp)\npopf" ::: "cc", "memory");
}

/* faults.c */
extern __thread long resume_at, resume_stack; /* where to go on behind the instruction that faulted */
extern __thread sigjmp_buf *landing;
void cause(enum fault);
int try_fault(enum fault);
void mend(ucontext_t *); /* what REPAIR does */
int fault_number(enum fault);

/* stages.c: what the program is after it has executed itself */
extern const char *const stages[];
int run_stage(const char *name);
#endif
