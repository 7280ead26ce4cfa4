/* What all fragments use: unbuffered output, one handler that says what it sees, signals and children of every kind. */
#include "fragments.h"

#include <execinfo.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <time.h>

extern sighandler_t bsd_signal(int, sighandler_t); /* left out of today's headers */
enum { PATIENCE = 4, MUCH_STACK = 150000 };

struct response {
    enum answer answer;
    body inside;
    int calls;
    int raw; /* set by the system call itself */
};
static struct response responses[NSIG + 1];
static volatile char sink;
int executed;

static char *put_number(char *at, unsigned long value, unsigned base) {
    char digits[24];
    int n = 0;
    do digits[n++] = "0123456789abcdef"[value % base];
    while (value /= base);
    while (n) *at++ = digits[--n];
    return at;
}

void say(const char *format, ...) {
    int kept = errno;
    char line[256], *at = line;
    va_list arguments;
    va_start(arguments, format);
    for (; *format && at < line + 200; format++) {
        if (*format != '%') {
            *at++ = *format;
            continue;
        }
        switch (*++format) {
            case 'd': {
                int value = va_arg(arguments, int);
                if (value < 0) *at++ = '-';
                at = put_number(at, value < 0 ? -(long)value : value, 10);
                break;
            }
            case 'x': at = put_number(at, va_arg(arguments, unsigned long), 16); break;
            case 's': at = stpncpy(at, va_arg(arguments, const char *), 40); break;
        }
    }
    va_end(arguments);
    *at++ = '\n';
    if (write(1, line, at - line) < 0) {
    } /* a program may have closed it */
    errno = kept;
}

void say_mask(const char *what) {
    sigset_t mask;
    sigemptyset(&mask);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    say("%s: mask %x", what, *(unsigned long *)&mask);
}

void say_status(const char *what, int status) {
    if (WIFSIGNALED(status))
        say("%s: killed by %d", what, WTERMSIG(status));
    else if (WIFSTOPPED(status))
        say("%s: stopped by %d", what, WSTOPSIG(status));
    else
        say("%s: exit %d", what, WEXITSTATUS(status));
}

void milliseconds(int n) {
    struct timespec left = {n / 1000, n % 1000 * 1000000L};
    while (nanosleep(&left, &left) && errno == EINTR) {
    }
}

/* ------------------------------------------------------------------------------------------- the handler */

static __attribute__((noinline)) void use_stack(int bytes) {
    char block[4096];
    memset(block, 0x41, sizeof block);
    sink = block[bytes % 4096];
    if (bytes > 4096) use_stack(bytes - 4096);
    sink = block[1];
}

static void say_information(const siginfo_t *info) {
    say("  code %d errno %d", info->si_code, info->si_errno);
    if (info->si_signo == SIGCHLD)
        say("  child's status %d", info->si_status);
    else if (info->si_signo == SIGSYS && info->si_code > 0)
        say("  call %d", info->si_syscall);
    else if (info->si_code <= 0)
        say("  from myself %d value %d", info->si_pid == getpid(), info->si_code == SI_QUEUE ? info->si_int : 0);
    else if ((uintptr_t)info->si_addr < 65536)
        say("  address %x", (unsigned long)info->si_addr);
    else
        say("  offset in page %x", (unsigned long)info->si_addr % 4096);
}

static int for_a_mistake(int number) {
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    for (int i = 0; i < 7; i++)
        if (numbers[i] == number) return 1;
    return 0;
}

static void say_context(const siginfo_t *info, const ucontext_t *context) {
    const greg_t *registers = context->uc_mcontext.gregs;
    say("  context: flags %x link %d mask %x", context->uc_flags, context->uc_link != NULL,
        *(unsigned long *)&context->uc_sigmask);
    if (for_a_mistake(info->si_signo) && !responses[info->si_signo].raw) /* of the others faultlens' own stack is seen here: docs/transparency.md */
        say("  context: stack %d %x", context->uc_stack.ss_flags & ~(executed ? SS_DISABLE : 0),
            (unsigned long)context->uc_stack.ss_size);
    if (info->si_code > 0 && info->si_signo != SIGSYS && info->si_signo != SIGCHLD)
        say("  trap %x error %x at the instruction %d", (unsigned long)registers[REG_TRAPNO],
            (unsigned long)registers[REG_ERR], (unsigned long)(resume_at - registers[REG_RIP]) < 32);
}

static void say_stack(const ucontext_t *context) {
    stack_t now = {0};
    sigaltstack(NULL, &now);
    char here;
    say("  stack: flags %d size %x on it %d aligned %d", now.ss_flags, (unsigned long)now.ss_size,
        (size_t)(&here - (char *)now.ss_sp) < now.ss_size, (uintptr_t)__builtin_frame_address(0) % 16 == 0);
    if (context) {
        long below = context->uc_mcontext.gregs[REG_RSP] - (long)&here;
        say("  just below the interrupted stack %d", below > 0 && below < 20000);
    }
}

/* Whether main is found by walking from the handler through the frame of the signal. */
static void unwind(void) {
    void *frames[64];
    int n = backtrace(frames, 64), seen = 0;
    for (int i = 0; i < n; i++) seen |= (uintptr_t)frames[i] - (uintptr_t)cause < 4096;
    say("  the cause is on the stack %d", seen);
}

static void again(int number) {
    static const enum fault others[] = {WRITE_NULL, DIVIDE, ILLEGAL, READ_TRUNCATED};
    cause(others[number % 4]);
}

static void answer(int number, enum answer answer, ucontext_t *context) {
    switch (answer) {
        case RETURN: return;
        case RAISE_SAME: raise(number); return;
        case UNBLOCK_AND_REPAIR: {
            sigset_t one;
            sigemptyset(&one);
            sigaddset(&one, number);
            pthread_sigmask(SIG_UNBLOCK, &one, NULL);
            mend(context);
            return;
        }
        case REPAIR: mend(context); return;
        case JUMP:
            if (landing) siglongjmp(*landing, number);
            return;
        case RERAISE:
            signal(number, SIG_DFL);
            raise(number);
            return;
        case RERAISE_BY_KILL:
            signal(number, SIG_DFL);
            kill(getpid(), number);
            return;
        case RETURN_TO_DEFAULT: signal(number, SIG_DFL); return;
        case ABORT: abort();
        case LEAVE: _exit(7);
        case EXIT: exit(8);
        case FAULT_AGAIN:
            again(number);
            mend(context);
            return;
        case USE_MUCH_STACK:
            use_stack(MUCH_STACK);
            mend(context);
            return;
        case END_THREAD:
            if (gettid() != getpid()) pthread_exit(NULL);
            _exit(9);
        case SET_CONTEXT:
            if (!context) _exit(10);
            mend(context);
            setcontext(context); /* a return by hand; the floating point state is the same */
            _exit(11);
        case UNWIND:
            unwind();
            mend(context);
            return;
    }
}

static void handle(int number, siginfo_t *info, ucontext_t *context) {
    clear_alignment_check();
    struct response *response = &responses[number];
    say("caught %d", number);
    say_mask(" in the handler");
    say_stack(context);
    if (info) {
        say_information(info);
        say_context(info, context);
    }
    if (++response->calls > PATIENCE) _exit(90);
    if (response->inside) {
        body inside = response->inside;
        response->inside = NULL; /* once */
        inside();
    }
    answer(number, response->answer, context);
}

static void with_information(int number, siginfo_t *info, void *context) { handle(number, info, context); }
static void without(int number) { handle(number, NULL, NULL); }

static const char *name_of(const struct sigaction *action) {
    if (action->sa_handler == SIG_DFL) return "default";
    if (action->sa_handler == SIG_IGN) return "ignored";
    if (action->sa_sigaction == with_information) return "with information";
    return action->sa_handler == without ? "without" : "other";
}

void say_action(int number) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    int result = sigaction(number, NULL, &action);
    say("%d is %s flags %x mask %x (%d)", number, name_of(&action), (unsigned long)(unsigned)action.sa_flags,
        *(unsigned long *)&action.sa_mask, result);
}

struct kernel_action {
    void *handler;
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

__attribute__((naked)) static void give_back(void) { __asm__("mov $15, %eax\nsyscall"); } /* rt_sigreturn */

void set_handler(enum setter setter, int number, int flags, enum answer answer, body inside) {
    responses[number] = (struct response){answer, inside, 0, setter == RAW_SIGACTION};
    struct sigaction action = {.sa_flags = flags};
    sigaddset(&action.sa_mask, SIGUSR2);
    if (flags & SA_SIGINFO)
        action.sa_sigaction = with_information;
    else
        action.sa_handler = without;
    switch (setter) {
        case SIGACTION: sigaction(number, &action, NULL); break;
        case SIGNAL: signal(number, without); break;
        case BSD_SIGNAL: bsd_signal(number, without); break;
        case SYSV_SIGNAL: sysv_signal(number, without); break;
        case SIGSET: sigset(number, without); break;
        case RAW_SIGACTION: {
            struct kernel_action raw = {action.sa_handler, flags | 0x04000000, give_back, 0};
            syscall(SYS_rt_sigaction, number, &raw, NULL, 8);
        }
    }
}

/* ---------------------------------------------------------------------------------- signals to oneself */

static void *send_from_thread(void *number) {
    milliseconds(3); /* until the creator has unblocked its signals */
    kill(getpid(), (int)(long)number);
    return NULL;
}

static void forge(int number) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = number;
    info.si_code = SEGV_MAPERR; /* to oneself the kernel lets any code through */
    info.si_addr = (void *)0x1234;
    syscall(SYS_rt_sigqueueinfo, getpid(), number, &info);
}

static void queue_to_thread(int number) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = number;
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_int = 77;
    syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), number, &info);
}

static void send_from_child(int number) {
    pid_t me = getpid(), child = fork();
    if (!child) {
        kill(me, number);
        _exit(0);
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
}

void send_signal(enum sender sender, int number) {
    pthread_t thread;
    switch (sender) {
        case RAISE: raise(number); break;
        case KILL: kill(getpid(), number); break;
        case TGKILL: syscall(SYS_tgkill, getpid(), gettid(), number); break;
        case PTHREAD_KILL: pthread_kill(pthread_self(), number); break;
        case SIGQUEUE: sigqueue(getpid(), number, (union sigval){.sival_int = 42}); break;
        case TGSIGQUEUE: queue_to_thread(number); break;
        case FORGED: forge(number); break;
        case FROM_CHILD: send_from_child(number); break;
        case FROM_THREAD:
            if (!pthread_create(&thread, NULL, send_from_thread, (void *)(long)number)) pthread_join(thread, NULL);
            break;
        case KILL_GROUP: kill(0, number); break; /* that of the program, and of what runs it for us alone */
    }
}

/* -------------------------------------------------------------------------------------------- children */

static int run_body(void *inside) {
    ((body)inside)();
    _exit(0);
}

static pid_t clone_by_hand(void) { return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }

static pid_t clone3_by_hand(void) {
    struct clone_args arguments = {.exit_signal = SIGCHLD};
    return syscall(SYS_clone3, &arguments, sizeof arguments);
}

pid_t make_child(enum maker maker, body inside) {
    enum { SIZE = 1 << 18 };
    pid_t child = -1;
    char *stack = NULL; /* never unmapped: the child may live on it */
    if (maker == CLONE_ON_STACK || maker == CLONE_SHARED)
        stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    switch (maker) {
        case FORK: child = fork(); break;
        case BARE_FORK: child = _Fork(); break;
        case VFORK: child = vfork(); break;
        case CLONE: child = clone_by_hand(); break;
        case CLONE3: child = clone3_by_hand(); break;
        case CLONE_ON_STACK: return clone(run_body, stack + SIZE, SIGCHLD, inside);
        case CLONE_SHARED: return clone(run_body, stack + SIZE, CLONE_VM | CLONE_VFORK | SIGCHLD, inside);
    }
    if (!child) run_body(inside);
    return child;
}
