/* Setting, asking for and leaving handlers. */
#include "fragments.h"

FRAGMENT install(any_signal number, action_flags flags, enum answer answer) {
    set_handler(SIGACTION, number, flags, answer, NULL);
    say_action(number);
}

FRAGMENT install_by(enum setter setter, any_signal number, enum answer answer) {
    set_handler(setter, number, 0, answer, NULL);
    if (setter != RAW_SIGACTION) say_action(number);
}

FRAGMENT install_with_body(any_signal number, action_flags flags, enum answer answer, body inside) {
    set_handler(SIGACTION, number, flags, answer, inside);
}

FRAGMENT set_default(any_signal number) { say("was %d", signal(number, SIG_DFL) == SIG_DFL); }
FRAGMENT ignore(any_signal number) { say("was ignored %d", signal(number, SIG_IGN) == SIG_IGN); }
FRAGMENT ignore_old_way(any_signal number) { say("sigignore %d", sigignore(number)); }

FRAGMENT set_interrupt(any_signal number) {
    say("siginterrupt %d", siginterrupt(number, 1));
    say_action(number);
}

FRAGMENT hold(any_signal number) {
    say("sigset gave %d", sigset(number, SIG_HOLD) == SIG_DFL);
    say_mask("held");
    sigrelse(number);
    say_action(number);
}

/* What a library does that wants a signal for the time of a call. */
FRAGMENT save_and_restore(fault_signal number, count times, action_flags flags) {
    struct sigaction mine = {.sa_handler = SIG_IGN, .sa_flags = flags}, before;
    for (int i = 0; i < times; i++) {
        if (sigaction(number, &mine, &before) || sigaction(number, &before, NULL)) say("failed");
    }
    say_action(number);
}

FRAGMENT save_and_restore_by_signal(fault_signal number, count times) {
    for (int i = 0; i < times; i++) signal(number, signal(number, SIG_IGN));
    say_action(number);
}

/* A new handler is put in front of the old one, again and again; the last is taken back first. */
FRAGMENT stack_of_handlers(fault_signal number, count times) {
    struct sigaction kept[300], mine = {.sa_handler = SIG_IGN};
    int depth = times < 300 ? times : 300;
    for (int i = 0; i < depth; i++) {
        mine.sa_flags = i % 2 ? SA_RESTART : SA_NODEFER;
        sigaction(number, &mine, &kept[i]);
    }
    int wrong = 0;
    for (int i = depth; i--;) {
        struct sigaction seen;
        sigaction(number, &kept[i], &seen);
        wrong += (seen.sa_flags & SA_RESTART) != (i % 2 ? SA_RESTART : 0);
    }
    say("wrong %d", wrong);
    say_action(number);
}

FRAGMENT ask_all(void) {
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (!sigaction(number, NULL, &action) && action.sa_handler != SIG_DFL) say_action(number);
    }
    say_mask("now");
}

FRAGMENT impossible_requests(void) {
    struct sigaction action = {.sa_handler = SIG_IGN}, old;
    static const int numbers[] = {0, -1, 32, 33, 65, 1000, SIGKILL, SIGSTOP};
    for (int i = 0; i < 8; i++) {
        errno = 0;
        int set = sigaction(numbers[i], &action, NULL);
        say("set %d: %d errno %d", numbers[i], set, errno);
        errno = 0;
        int got = sigaction(numbers[i], NULL, &old);
        say("get %d: %d errno %d", numbers[i], got, errno);
        errno = 0;
        say("signal: failed %d errno %d", signal(numbers[i], SIG_IGN) == SIG_ERR, errno);
    }
}

FRAGMENT unknown_flags(fault_signal number) {
    struct sigaction action = {.sa_handler = SIG_IGN, .sa_flags = 0x400 | 0x2000 | SA_SIGINFO}; /* SA_UNSUPPORTED */
    sigfillset(&action.sa_mask);
    sigaction(number, &action, NULL);
    say_action(number);
    signal(number, SIG_DFL);
}

FRAGMENT cause_fault(enum fault fault) { cause(fault); }

FRAGMENT recover(enum fault fault, enum setter setter, action_flags flags) {
    set_handler(setter, fault_number(fault), flags, JUMP, NULL);
    cause(fault);
}

static void quiet_jump(int number) { siglongjmp(*landing, number); }

FRAGMENT recover_often(enum fault fault, count times) {
    int number = fault_number(fault), recovered = 0;
    struct sigaction action = {.sa_handler = quiet_jump}, before;
    for (int i = 0; i < times; i++) {
        sigaction(number, &action, &before);
        recovered += try_fault(fault == WITHOUT_STACK ? ILLEGAL : fault) == number;
        sigaction(number, &before, NULL);
    }
    say("recovered %d", recovered);
    say_action(number);
}

FRAGMENT repair(enum fault fault, action_flags flags) {
    set_handler(SIGACTION, fault_number(fault), flags | SA_SIGINFO, REPAIR, NULL);
    cause(fault);
}

FRAGMENT answered(enum fault fault, action_flags flags, enum answer answer) {
    set_handler(SIGACTION, fault_number(fault), flags, answer, NULL);
    cause(fault);
}

FRAGMENT once_only(enum fault fault) {
    set_handler(SIGACTION, fault_number(fault), SA_RESETHAND | SA_SIGINFO, REPAIR, NULL);
    cause(fault);
    say_action(fault_number(fault));
}

/* The kernel ends a program whose fault is blocked or ignored, whatever handler it has. */
FRAGMENT fault_blocked(enum fault fault, action_flags flags) {
    sigset_t all;
    sigfillset(&all);
    set_handler(SIGACTION, fault_number(fault), flags, REPAIR, NULL);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    cause(fault);
}

FRAGMENT fault_ignored(enum fault fault) {
    signal(fault_number(fault), SIG_IGN);
    cause(fault);
}

FRAGMENT send_one(enum sender sender, any_signal number) {
    send_signal(sender, number);
    say("sent %d", number);
}

FRAGMENT handled(enum sender sender, any_signal number, action_flags flags) {
    set_handler(SIGACTION, number, flags, RETURN, NULL);
    send_signal(sender, number);
    say_action(number);
}

FRAGMENT handled_answered(enum sender sender, any_signal number, action_flags flags, enum answer answer) {
    set_handler(SIGACTION, number, flags, answer, NULL);
    send_signal(sender, number);
    say("still here");
}

FRAGMENT send_ignored(enum sender sender, any_signal number) {
    signal(number, SIG_IGN);
    send_signal(sender, number);
    say("ignored %d", number);
}

FRAGMENT send_blocked(enum sender sender, any_signal number, enum answer answer) {
    sigset_t one, pending;
    sigemptyset(&one);
    sigaddset(&one, number);
    set_handler(SIGACTION, number, SA_SIGINFO, answer, NULL);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    send_signal(sender, number);
    sigemptyset(&pending);
    sigpending(&pending);
    say("pending %d", sigismember(&pending, number));
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    say("unblocked");
}

/* A handler at no address: the fault of calling it is the next one. */
FRAGMENT handler_nowhere(any_signal number) {
    struct sigaction action = {.sa_handler = (sighandler_t)0x1000};
    sigaction(number, &action, NULL);
    raise(number);
    say("not reached");
}

static volatile int steps;
static void count_step(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    if (++steps == 20) ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100;
}

FRAGMENT single_steps(void) {
    struct sigaction action = {.sa_sigaction = count_step, .sa_flags = SA_SIGINFO}, before;
    steps = 0;
    sigaction(SIGTRAP, &action, &before);
    __asm__ volatile("pushf\norl $0x100, (%%rsp)\npopf\n.rept 40\nnop\n.endr" ::: "cc", "memory");
    sigaction(SIGTRAP, &before, NULL);
    say("steps %d", steps);
}
