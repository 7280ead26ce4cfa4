/* Threads: faults in them, ends while others run, storms of signals between them. */
#include "fragments.h"

static void *run(void *inside) {
    ((body)inside)();
    return NULL;
}

FRAGMENT in_thread(body inside) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, inside)) {
        say("no thread");
        return;
    }
    pthread_join(thread, NULL);
    say("joined");
}

FRAGMENT in_small_thread(stack_size size, body inside) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, size < 16384 ? 16384 : size);
    if (!pthread_create(&thread, &attributes, run, inside)) pthread_join(thread, NULL);
    say("joined");
}

/* Nobody joins it; a value of the thread's own says when it is gone. */
static volatile int gone;
static pthread_key_t going;
static void note_gone(void *unused) {
    (void)unused;
    gone = 1;
}
static void *run_detached(void *inside) {
    pthread_setspecific(going, inside);
    return run(inside);
}
FRAGMENT in_detached_thread(body inside) {
    pthread_t thread;
    pthread_attr_t attributes;
    gone = 0;
    pthread_key_create(&going, note_gone);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attributes, run_detached, inside)) return;
    for (int i = 0; i < 4000 && !gone; i++) milliseconds(1);
    say("detached thread gone %d", gone);
}

/* The first thread leaves; the last one to end decides the status. */
static body lasting;
static void *last(void *unused) {
    (void)unused;
    milliseconds(5);
    lasting();
    say("last thread");
    return NULL;
}
ENDING main_leaves(body inside) {
    pthread_t thread;
    lasting = inside;
    if (!pthread_create(&thread, NULL, last, NULL)) pthread_exit(NULL);
    _exit(60);
}

/* -------------------------------------------------------------------------- many threads, many faults */

enum { MOST = 8 };
static volatile int storm_times;
static enum fault storm_fault;
static void quiet_jump(int number) { siglongjmp(*landing, number); }

static void *fault_often(void *sum) {
    for (int i = 0; i < storm_times; i++) *(int *)sum += try_fault(storm_fault) != 0;
    return NULL;
}

FRAGMENT storm_of_faults(count threads, count times, enum fault fault) {
    pthread_t ids[MOST];
    int sums[MOST] = {0}, n = threads < MOST ? threads : MOST, sum = 0;
    struct sigaction action = {.sa_handler = quiet_jump};
    storm_times = times;
    storm_fault = fault == WITHOUT_STACK ? ILLEGAL : fault;
    sigaction(fault_number(storm_fault), &action, NULL);
    for (int i = 0; i < n; i++) pthread_create(&ids[i], NULL, fault_often, &sums[i]);
    for (int i = 0; i < n; i++) {
        pthread_join(ids[i], NULL);
        sum += sums[i];
    }
    say("recovered %d", sum);
}

/* Handlers are changed by one thread while another needs them. */
static void *change_often(void *stop) {
    struct sigaction action = {.sa_handler = quiet_jump};
    while (!*(volatile int *)stop) {
        action.sa_flags ^= SA_NODEFER;
        sigaction(fault_number(storm_fault), &action, NULL);
    }
    return NULL;
}
FRAGMENT faults_while_handlers_change(enum fault fault, count times) {
    struct sigaction action = {.sa_handler = quiet_jump};
    int sum = 0, stop = 0;
    pthread_t other;
    storm_times = times;
    storm_fault = fault == WITHOUT_STACK ? ILLEGAL : fault;
    sigaction(fault_number(storm_fault), &action, NULL);
    pthread_create(&other, NULL, change_often, &stop);
    fault_often(&sum);
    *(volatile int *)&stop = 1;
    pthread_join(other, NULL);
    say("recovered %d", sum);
}

static volatile int hits;
static void hit(int number) {
    if (number) __atomic_add_fetch(&hits, 1, __ATOMIC_SEQ_CST);
}
static pthread_t target;
static void *bombard(void *times) {
    for (long i = 0; i < (long)times; i++) pthread_sigqueue(target, SIGRTMIN + 4, (union sigval){0});
    return NULL;
}
/* Real-time signals from another thread at random instants: none is lost, no fault goes astray. */
FRAGMENT bombarded(count times, enum fault fault) {
    struct sigaction counting = {.sa_handler = hit, .sa_flags = SA_RESTART}, jumping = {.sa_handler = quiet_jump};
    pthread_t other;
    int sum = 0;
    hits = 0;
    target = pthread_self();
    storm_times = times;
    storm_fault = fault == WITHOUT_STACK ? ILLEGAL : fault;
    sigaction(SIGRTMIN + 4, &counting, NULL);
    sigaction(fault_number(storm_fault), &jumping, NULL);
    pthread_create(&other, NULL, bombard, (void *)(long)times);
    fault_often(&sum);
    pthread_join(other, NULL);
    say("hits %d recovered %d", hits, sum);
}

/* --------------------------------------------------------------------------- ends while others run */

static void *spin(void *unused) {
    for (volatile long i = 0;; i++) {
        void *block = malloc(1000);
        free(block);
    }
    return unused;
}

static void *wait_forever(void *unused) {
    for (;;) pause();
    return unused;
}

static void start_others(int n) {
    pthread_t thread;
    for (int i = 0; i < n && i < MOST; i++) pthread_create(&thread, NULL, i % 2 ? spin : wait_forever, NULL);
}

static void leave(enum leaver leaver, int code) {
    switch (leaver) {
        case BY_EXIT: exit(code);
        case BY_UNDERSCORE_EXIT: _exit(code);
        case BY_QUICK_EXIT: quick_exit(code);
        case BY_EXIT_GROUP: syscall(SYS_exit_group, code); break;
        case BY_ABORT: abort();
        case BY_SIGNAL: raise(SIGTERM);
    }
}
ENDING leave_while_others_run(count threads, enum leaver leaver, status code) {
    start_others(threads);
    leave(leaver, code);
}

static enum leaver threads_leaver;
static void *leave_from_thread(void *code) {
    leave(threads_leaver, (int)(long)code);
    return NULL;
}
ENDING thread_leaves(count threads, enum leaver leaver, status code) {
    pthread_t thread;
    threads_leaver = leaver;
    start_others(threads);
    pthread_create(&thread, NULL, leave_from_thread, (void *)(long)code);
    wait_forever(NULL);
}

/* One crashes; what the others would do a moment later must not happen. */
static enum fault threads_fault;
static void *crash(void *unused) {
    signal(fault_number(threads_fault), SIG_DFL);
    cause(threads_fault);
    return unused;
}
ENDING crash_before_exit(count delay, enum fault fault, count threads) {
    pthread_t thread;
    threads_fault = fault;
    start_others(threads);
    pthread_create(&thread, NULL, crash, NULL);
    milliseconds(20 + delay);
    say("main: finished well");
    exit(0);
}

static pthread_barrier_t gate;
static void *crash_at_the_gate(void *unused) {
    pthread_barrier_wait(&gate);
    cause(threads_fault);
    return unused;
}
ENDING crash_together(count threads, enum fault fault) {
    pthread_t thread;
    int n = threads < MOST ? threads : MOST;
    threads_fault = fault;
    signal(fault_number(fault), SIG_DFL);
    pthread_barrier_init(&gate, NULL, n);
    for (int i = 0; i < n; i++) pthread_create(&thread, NULL, crash_at_the_gate, NULL);
    wait_forever(NULL);
}

ENDING crash_while_others_spin(count threads, enum fault fault) {
    start_others(threads);
    signal(fault_number(fault), SIG_DFL);
    cause(fault);
}

/* Both the fork and its parent's other threads are busy. */
FRAGMENT fork_while_threads_run(count threads, body inside) {
    start_others(threads % 4);
    pid_t child = fork();
    int status = 0;
    if (!child) {
        inside();
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    say_status("child of threads", status);
}

static void *cancelled(void *unused) {
    for (;;) pause();
    return unused;
}
FRAGMENT cancel_thread(void) {
    pthread_t thread;
    void *result = NULL;
    pthread_create(&thread, NULL, cancelled, NULL);
    milliseconds(2);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    say("cancelled %d", result == PTHREAD_CANCELED);
}

static void *fault_with_all_blocked(void *unused) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    cause(threads_fault);
    return unused;
}
FRAGMENT thread_blocks_and_faults(enum fault fault) {
    pthread_t thread;
    threads_fault = fault;
    pthread_create(&thread, NULL, fault_with_all_blocked, NULL);
    pthread_join(thread, NULL);
}
