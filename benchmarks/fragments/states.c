/* States in which a program may be when it dies: locks held, nothing left, nothing mounted, nobody's thread. */
#include "fragments.h"

#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static body held_body;

static int inside_loader(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)info, (void)size, (void)unused;
    held_body();
    return 1;
}
/* The lock of the dynamic loader is held. */
FRAGMENT while_loader_is_locked(body inside) {
    held_body = inside;
    dl_iterate_phdr(inside_loader, NULL);
}

FRAGMENT while_output_is_locked(body inside) {
    flockfile(stdout);
    flockfile(stderr);
    inside();
    funlockfile(stderr);
    funlockfile(stdout);
}

static int compare_inside(const void *a, const void *b) {
    (void)a, (void)b;
    held_body();
    return 0;
}
FRAGMENT inside_sort(body inside) {
    int two[2] = {2, 1};
    held_body = inside;
    qsort(two, 2, sizeof *two, compare_inside);
}

/* Handlers of fork run in the parent, before and after, and in the child. */
static void say_prepare(void) { say("fork: prepare"); }
static void say_parent(void) { milliseconds(5); } /* the child speaks first */
static void say_child(void) { say("fork: child"); }
FRAGMENT at_fork(void) { pthread_atfork(say_prepare, say_parent, say_child); }

static enum fault forked_fault;
static void crash_in_child(void) {
    signal(fault_number(forked_fault), SIG_DFL);
    cause(forked_fault);
}
FRAGMENT at_fork_crash(enum fault fault) {
    int status = 0;
    forked_fault = fault;
    pthread_atfork(NULL, NULL, crash_in_child);
    pid_t child = fork();
    if (!child) _exit(0);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    say_status("forked", status);
}

extern char **environ;
FRAGMENT clear_environment(void) {
    clearenv();
    environ = NULL;
}

FRAGMENT use_all_files(void) {
    struct rlimit limit = {64, 64};
    int n = 0;
    setrlimit(RLIMIT_NOFILE, &limit);
    while (dup(1) >= 0) n++;
    say("files %d", n);
}

FRAGMENT use_all_memory(void) {
    struct rlimit limit = {300 << 20, 300 << 20};
    setrlimit(RLIMIT_AS, &limit);
    for (size_t size = 1 << 26; size >= 16; size /= 2)
        while (malloc(size)) {
        }
    say("memory is used up");
}

/* A process that does not exist for /proc. */
FRAGMENT without_proc(body inside) {
    int status = 0;
    pid_t child = fork();
    if (!child) {
        int failed = unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
                     mount("none", "/proc", "tmpfs", 0, NULL);
        say("no /proc %d", !failed);
        if (!failed) inside();
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    say_status("without /proc", status);
}

/* A thread that the C library knows nothing of, on 32 KiB. */
static enum fault raw_fault;
static volatile int raw_ended;
static int raw_run(void *unused) {
    (void)unused;
    cause(raw_fault);
    raw_ended = 1;
    syscall(SYS_exit, 0);
    return 0;
}
FRAGMENT raw_thread(enum fault fault, action_flags flags, enum answer answer) {
    enum { SIZE = 1 << 15 };
    char *stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    raw_fault = fault;
    raw_ended = 0;
    set_handler(SIGACTION, fault_number(fault), flags, answer == END_THREAD ? REPAIR : answer, NULL);
    int kinds = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    if (clone(raw_run, stack + SIZE, kinds, NULL) < 0) return;
    for (int i = 0; i < 1000 && !raw_ended; i++) milliseconds(1);
    say("raw thread ended %d", raw_ended);
}
ENDING raw_thread_crashes(enum fault fault) {
    signal(fault_number(fault), SIG_DFL);
    raw_thread(fault, 0, RETURN_TO_DEFAULT);
}

/* Every system call is a signal, but those made from the address range of the C library. */
static volatile char selector;
static void let_through(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    selector = 0; /* SYSCALL_DISPATCH_FILTER_ALLOW */
    say("dispatched: code %d call %d", info->si_code, info->si_syscall);
}
FRAGMENT dispatched_calls(void) {
    struct sigaction action = {.sa_sigaction = let_through, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    errno = 0;
    int result = prctl(59, 1, 0, 0, &selector); /* PR_SET_SYSCALL_USER_DISPATCH */
    say("dispatch %d errno %d", result, errno);
    selector = 1;
    syscall(SYS_getppid);
    selector = 0;
    prctl(59, 0, 0, 0, 0);
}

/* Orphans come to the program, with their statuses. */
static void leave_crashing_child(void) {
    if (!fork()) {
        signal(SIGSEGV, SIG_DFL);
        milliseconds(10);
        cause(WRITE_NULL);
    }
    _exit(6);
}
FRAGMENT reap_orphans(void) {
    int status;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    make_child(FORK, leave_crashing_child);
    for (int i = 0; i < 2; i++)
        if (waitpid(-1, &status, 0) > 0) say_status("reaped", status);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

/* The shell gets its prompt back; the program goes on in a session of its own. */
ENDING become_daemon(body inside) {
    pid_t child = fork();
    if (child) _exit(child < 0 ? 51 : 0);
    setsid();
    milliseconds(20);
    inside();
    _exit(0);
}

static void send_and_wait(pid_t parent, int number) {
    kill(parent, number);
    for (int i = 0; i < 5000 && getppid() == parent; i++) milliseconds(1);
    if (getppid() == parent) kill(parent, SIGKILL);
    _exit(0);
}
ENDING killed_by_child(any_signal number, count delay) {
    pid_t me = getpid();
    signal(number, SIG_DFL);
    if (!fork()) {
        milliseconds(delay % 11);
        send_and_wait(me, number);
    }
    for (;;) milliseconds(100);
}

static void quiet_jump(int number) { siglongjmp(*landing, number); }
/* An alarm that kills, while fault after fault is recovered from. */
ENDING killed_in_storm(enum fault fault) {
    struct sigaction action = {.sa_handler = quiet_jump};
    signal(SIGALRM, SIG_DFL);
    sigaction(fault_number(fault), &action, NULL);
    ualarm(8000, 0);
    for (;;) try_fault(fault == WITHOUT_STACK ? ILLEGAL : fault);
}

/* As much environment as the kernel takes must still be taken. */
FRAGMENT full_environment(void) {
    enum { LONGEST = 131000 };
    static char text[LONGEST + 1];
    int low = 2, high = LONGEST;
    char *variables[20] = {0}, *arguments[] = {"stage", "exit", NULL};
    memset(text, 'a', LONGEST);
    text[1] = '=';
    struct rlimit limit = {4 << 20, 4 << 20}; /* a quarter of it: 1 MiB */
    setrlimit(RLIMIT_STACK, &limit);
    for (int i = 0; i < 8; i++) variables[i] = text;
    char *last = strdup(text);
    while (high - low > 8) {
        int middle = (low + high) / 2, status = 0;
        memset(last, 'b', LONGEST);
        last[1] = '=';
        last[middle] = 0;
        variables[8] = last;
        pid_t child = fork();
        if (!child) {
            int nowhere = open("/dev/null", O_WRONLY);
            dup2(nowhere, 1);
            execve("/proc/self/exe", arguments, variables);
            _exit(errno == E2BIG ? 1 : 2);
        }
        waitpid(child, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 21)
            low = middle;
        else
            high = middle;
    }
    say("environment taken to %d", low / 64);
}

/* A file that is no program is run by the shell; names are looked for in PATH. */
FRAGMENT execute_script(void) {
    int file = open("script", O_WRONLY | O_CREAT | O_TRUNC, 0755), status = 0;
    if (file < 0 || write(file, "echo by the shell\nkill -SEGV $$\n", 32) != 32) return;
    close(file);
    for (int way = 0; way < 3; way++) {
        pid_t child = fork();
        if (!child) {
            char *arguments[] = {"script", NULL};
            setenv("PATH", "/nowhere:.:/bin", 1);
            if (way == 0) execvp("script", arguments);
            if (way == 1) execlp("./script", "script", NULL);
            if (way == 2) execve("script", arguments, environ);
            say("not executed: %d", errno);
            _exit(40);
        }
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        say_status("script", status);
    }
    unlink("script");
}
