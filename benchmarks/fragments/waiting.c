/* Signals that are waited for, that interrupt, that arrive at their own time. */
#include "fragments.h"

#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <time.h>

static sigset_t only(int number) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    return one;
}

static void wait_by(enum waiter waiter, const sigset_t *one) {
    siginfo_t info = {0};
    int number = 0, file;
    struct signalfd_siginfo seen = {0};
    struct timespec limit = {1, 0};
    sigset_t others;
    switch (waiter) {
        case SIGWAIT: sigwait(one, &number); break;
        case SIGWAITINFO: number = sigwaitinfo(one, &info); break;
        case SIGTIMEDWAIT: number = sigtimedwait(one, &info, &limit); break;
        case SIGNALFD:
            file = signalfd(-1, one, SFD_NONBLOCK);
            if (read(file, &seen, sizeof seen) < 0) say("signalfd: errno %d", errno);
            number = seen.ssi_signo;
            info.si_code = seen.ssi_code;
            close(file);
            break;
        case SIGSUSPEND:
            sigfillset(&others);
            for (int i = 1; i < NSIG; i++)
                if (sigismember(one, i) == 1) sigdelset(&others, i);
            number = sigsuspend(&others);
            break;
    }
    say("waited: %d code %d errno %d", number, info.si_code, number < 0 ? errno : 0);
}

FRAGMENT wait_for_signal(enum waiter waiter, enum sender sender, any_signal number) {
    sigset_t one = only(number), before;
    set_handler(SIGACTION, number, SA_SIGINFO, RETURN, NULL);
    pthread_sigmask(SIG_BLOCK, &one, &before);
    send_signal(sender, number);
    wait_by(waiter, &one);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

FRAGMENT wait_in_vain(any_signal number) {
    sigset_t one = only(number);
    struct timespec limit = {0, 2000000};
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    errno = 0;
    int got = sigtimedwait(&one, NULL, &limit);
    say("in vain %d errno %d", got, errno);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}

/* -------------------------------------------------------------------------------- interrupted calls */

static pthread_t sleeping;
static int wakes_number, pipe_ends[2];
static volatile int called;
static void note(int number) { called = number; }

static void *wake(void *unused) {
    (void)unused;
    milliseconds(15);
    pthread_kill(sleeping, wakes_number);
    milliseconds(15);
    if (write(pipe_ends[1], "x", 1) < 0) say("no pipe");
    return NULL;
}

static int sleep_by(enum sleeper sleeper) {
    struct pollfd poll_one = {pipe_ends[0], POLLIN, 0};
    struct timespec third = {0, 60000000};
    struct timeval limit = {0, 60000};
    struct epoll_event event = {.events = EPOLLIN};
    sem_t semaphore;
    fd_set files;
    char byte;
    int queue, result;
    switch (sleeper) {
        case READ: return read(pipe_ends[0], &byte, 1);
        case POLL: return poll(&poll_one, 1, 1000);
        case SELECT:
            FD_ZERO(&files);
            FD_SET(pipe_ends[0], &files);
            return select(pipe_ends[0] + 1, &files, NULL, NULL, &limit);
        case EPOLL:
            queue = epoll_create1(EPOLL_CLOEXEC);
            epoll_ctl(queue, EPOLL_CTL_ADD, pipe_ends[0], &event);
            result = epoll_wait(queue, &event, 1, 1000);
            close(queue);
            return result;
        case SEMAPHORE:
            sem_init(&semaphore, 0, 0);
            clock_gettime(CLOCK_REALTIME, &third);
            third.tv_sec++;
            return sem_timedwait(&semaphore, &third);
        case NANOSLEEP: return nanosleep(&third, NULL);
        case WAITPID: {
            pid_t child = fork();
            if (!child) {
                milliseconds(40);
                _exit(0);
            }
            result = waitpid(child, NULL, 0) == child ? 1 : -1;
            int kept = errno;
            if (result < 0) waitpid(child, NULL, 0);
            errno = kept;
            return result;
        }
        case FUTEX_JOIN: return 0; /* the join below */
        case PAUSE: return pause();
    }
    return -2;
}

FRAGMENT interrupted(enum sleeper sleeper, any_signal number, action_flags flags) {
    struct sigaction action = {.sa_handler = note, .sa_flags = flags & ~(SA_SIGINFO | SA_ONSTACK)}, before;
    pthread_t waker;
    if (pipe2(pipe_ends, O_CLOEXEC)) return;
    sleeping = pthread_self();
    wakes_number = number;
    called = 0;
    sigaction(number, &action, &before);
    pthread_create(&waker, NULL, wake, NULL);
    errno = 0;
    int result = sleep_by(sleeper);
    say("slept: %d errno %d", result, result < 0 ? errno : 0);
    pthread_join(waker, NULL);
    say("called %d", called);
    sigaction(number, &before, NULL);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

/* ------------------------------------------------------------------------------------------- timers */

static volatile int ticks;
static void tick(int number) { ticks += number != 0; }

static void start_timer(int clock_events, int number, int microseconds) {
    struct sigevent event = {.sigev_notify = clock_events, .sigev_signo = number, .sigev_value.sival_int = 5};
    struct itimerspec period = {{0, microseconds * 1000L}, {0, microseconds * 1000L}};
    timer_t timer;
    if (clock_events == SIGEV_THREAD_ID) event._sigev_un._tid = gettid();
    if (!timer_create(CLOCK_MONOTONIC, &event, &timer)) timer_settime(timer, 0, &period, NULL);
}

static void set_alarm(enum alarm kind, int number, int microseconds) {
    struct itimerval period = {{0, microseconds}, {0, microseconds}};
    switch (kind) {
        case ALARM: ualarm(microseconds, microseconds); break;
        case ITIMER_OF_TIME: setitimer(ITIMER_REAL, &period, NULL); break;
        case ITIMER_OF_CPU: setitimer(ITIMER_PROF, &period, NULL); break;
        case TIMER_WITH_VALUE: start_timer(SIGEV_SIGNAL, number, microseconds); break;
        case TIMER_OF_THREAD: start_timer(SIGEV_THREAD_ID, number, microseconds); break;
    }
}

static void stop_alarms(void) {
    struct itimerval none = {0};
    setitimer(ITIMER_REAL, &none, NULL);
    setitimer(ITIMER_PROF, &none, NULL);
}

static int alarm_number(enum alarm kind) {
    return kind == ALARM || kind == ITIMER_OF_TIME ? SIGALRM : kind == ITIMER_OF_CPU ? SIGPROF : SIGRTMIN + 7;
}

/* A sampling profiler beside faults that are mended. */
FRAGMENT faults_under_timer(enum alarm kind, enum fault fault, count times) {
    extern void quiet_repair(int, siginfo_t *, void *);
    int number = alarm_number(kind), mended = 0;
    struct sigaction ticking = {.sa_handler = tick, .sa_flags = SA_RESTART};
    struct sigaction mending = {.sa_sigaction = quiet_repair, .sa_flags = SA_SIGINFO};
    ticks = 0;
    sigaction(number, &ticking, NULL);
    sigaction(fault_number(fault), &mending, NULL);
    set_alarm(kind, number, 700);
    for (int i = 0; i < times; i++) mended += try_fault(fault) == 0;
    for (time_t end = time(NULL) + 3; ticks < 3 && time(NULL) < end;) {
    }
    stop_alarms();
    signal(number, SIG_IGN);
    say("mended %d ticked %d", mended, ticks >= 3);
}
void quiet_repair(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    mend(context);
}

ENDING killed_by_timer(enum alarm kind) {
    signal(alarm_number(kind), SIG_DFL);
    set_alarm(kind, alarm_number(kind), 3000);
    for (;;) {
    }
}

/* Real-time signals are queued: none is lost, the lowest comes first, each with its value. */
static int order[64];
static volatile int arrived;
static void note_value(int number, siginfo_t *info, void *context) {
    (void)context;
    if (arrived < 64) order[arrived++] = number * 100 + info->si_int;
}
FRAGMENT queued(count times) {
    struct sigaction action = {.sa_sigaction = note_value, .sa_flags = SA_SIGINFO};
    sigset_t both = only(SIGRTMIN + 3), before;
    int n = times < 20 ? times : 20, sum = 0;
    sigaddset(&both, SIGRTMIN + 5);
    sigfillset(&action.sa_mask);
    sigaction(SIGRTMIN + 3, &action, NULL);
    sigaction(SIGRTMIN + 5, &action, NULL);
    arrived = 0;
    pthread_sigmask(SIG_BLOCK, &both, &before);
    for (int i = 0; i < n; i++) sigqueue(getpid(), SIGRTMIN + (i % 2 ? 3 : 5), (union sigval){.sival_int = i});
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (int i = 0; i < arrived; i++) sum = (sum * 31 + order[i]) % 1000003;
    say("arrived %d in order %d", arrived, sum);
}

/* A signal that stops the program, and a child that lets it go on. */
FRAGMENT stopped_and_continued(void) {
    pid_t me = getpid(), child = fork();
    if (!child) {
        milliseconds(30);
        kill(me, SIGCONT);
        _exit(0);
    }
    kill(me, SIGSTOP);
    say("continued");
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
}
