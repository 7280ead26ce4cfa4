/* Children of every kind, and programs that become others. */
#include "fragments.h"

#include <dirent.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

extern char **environ;

static void wait_for(pid_t child, const char *what) {
    int status;
    if (child < 0) {
        say("%s: no child, errno %d", what, errno);
        return;
    }
    while (waitpid(child, &status, __WALL) < 0)
        if (errno != EINTR) {
            say("%s: no status, errno %d", what, errno);
            return;
        }
    say_status(what, status);
}

FRAGMENT in_child(enum maker maker, body inside) { wait_for(make_child(maker, inside), "child"); }

/* Handlers that a child sets are its own, even when it shares the memory. */
static int children_number;
static void set_in_child(void) {
    signal(children_number, SIG_IGN);
    say_action(children_number);
    _exit(3);
}
FRAGMENT child_sets_handler(enum maker maker, any_signal number) {
    children_number = number;
    wait_for(make_child(maker, set_in_child), "child");
    say_action(number);
}

static enum fault childrens_fault;
static void crash_quietly(void) {
    signal(fault_number(childrens_fault), SIG_DFL);
    cause(childrens_fault);
}
FRAGMENT child_crashes(enum maker maker, enum fault fault) {
    childrens_fault = fault;
    wait_for(make_child(maker, crash_quietly), "child");
}

FRAGMENT many_children_crash(count times, enum fault fault) {
    int n = times < 12 ? times : 12, killed = 0, status;
    childrens_fault = fault;
    pid_t children[12];
    for (int i = 0; i < n; i++) children[i] = make_child(i % 2 ? FORK : CLONE, crash_quietly);
    for (int i = 0; i < n; i++) killed += waitpid(children[i], &status, 0) == children[i] && WIFSIGNALED(status);
    say("killed %d", killed);
}

/* No child but the program's own is there to be waited for. */
FRAGMENT no_other_children(void) {
    errno = 0;
    pid_t child = waitpid(-1, NULL, WNOHANG | __WALL);
    say("another child %d errno %d", child > 0, errno);
}

static void leave_orphan(void) {
    if (!fork()) {
        milliseconds(20);
        signal(SIGSEGV, SIG_DFL);
        cause(WRITE_NULL);
    }
    _exit(5);
}
FRAGMENT orphan_crashes(void) { wait_for(make_child(FORK, leave_orphan), "parent of an orphan"); }

static void sleep_long(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGTERM, SIG_DFL);
    milliseconds(5000);
}
FRAGMENT child_killed(enum maker maker, any_signal number, count delay) {
    if (maker == VFORK || maker == CLONE_SHARED) maker = FORK; /* those hold the parent */
    pid_t child = make_child(maker, sleep_long);
    milliseconds(delay % 8);
    kill_child(child, number == SIGCHLD || number == SIGURG || number == SIGWINCH || number == SIGTSTP ? SIGKILL : number);
    milliseconds(2);
    kill_child(child, SIGKILL);
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    say("the child is dead %d", WIFSIGNALED(status));
}

/* ------------------------------------------------------------------------------------ other programs */

static char **environment(enum environment choice) {
    static char *none[] = {NULL}, *own[] = {"LD_PRELOAD=libm.so.6", "A=b", NULL};
    switch (choice) {
        case NO_ENVIRONMENT: return none;
        case OWN_PRELOAD: return own;
        case WITHOUT_PRELOAD: unsetenv("LD_PRELOAD"); return environ;
        default: return environ;
    }
}

static void become(enum executor executor, const char *stage, char **variables) {
    const char *self = "/proc/self/exe";
    char *arguments[] = {"stage", (char *)stage, NULL};
    switch (executor) {
        case EXECVE: execve(self, arguments, variables); break;
        case EXECV:
            environ = variables;
            execv(self, arguments);
            break;
        case EXECL: execle(self, "stage", stage, NULL, variables); break;
        case FEXECVE: fexecve(open(self, O_RDONLY), arguments, variables); break;
        case EXECVEAT: syscall(SYS_execveat, AT_FDCWD, self, arguments, variables, 0); break;
        case EXECVPE: execvpe(self, arguments, variables); break;
        case RAW_EXECVE: syscall(SYS_execve, self, arguments, variables); break;
    }
    say("not executed: errno %d", errno);
    _exit(70);
}

ENDING execute(enum executor executor, enum stage stage, enum environment choice) {
    become(executor, stages[stage], environment(choice));
}

static enum executor childrens_executor;
static enum stage childrens_stage;
static enum environment childrens_environment;
static void execute_in_child(void) {
    execute(childrens_executor, childrens_stage, childrens_environment);
}
FRAGMENT execute_child(enum maker maker, enum executor executor, enum stage stage, enum environment choice) {
    if (maker == VFORK || maker == CLONE_SHARED) choice = choice == WITHOUT_PRELOAD ? SAME_ENVIRONMENT : choice;
    if (executor == EXECV && (maker == VFORK || maker == CLONE_SHARED)) executor = EXECVE; /* environ is shared */
    childrens_executor = executor;
    childrens_stage = stage;
    childrens_environment = choice;
    wait_for(make_child(maker, execute_in_child), "executed");
}

static void *execute_from_thread(void *stage) {
    become(EXECVE, stage, environ);
    return NULL;
}
ENDING execute_while_threads_run(enum stage stage) {
    pthread_t thread;
    pthread_create(&thread, NULL, execute_from_thread, (void *)stages[stage]);
    for (;;) pause();
}

FRAGMENT failed_execution(void) {
    char *arguments[] = {"x", NULL};
    errno = 0;
    int result = execve("/nowhere/at/all", arguments, environ);
    say("nowhere %d errno %d", result, errno);
    result = execve("/proc/self/exe", arguments, (char **)16);
    say("bad environment %d errno %d", result, errno);
    result = execve("/proc/self/exe", (char **)16, environ);
    say("bad arguments %d errno %d", result, errno);
    result = execve((char *)16, arguments, environ);
    say("bad path %d errno %d", result, errno);
    result = execve("/", arguments, environ);
    say("folder %d errno %d", result, errno);
}

FRAGMENT spawn(enum spawner spawner, enum stage stage, enum environment choice) {
    char *arguments[] = {"stage", (char *)stages[stage], NULL}, command[4200] = "exec ", line[200];
    posix_spawnattr_t attributes;
    pid_t child;
    int result = 0;
    posix_spawnattr_init(&attributes);
    ssize_t length = readlink("/proc/self/exe", command + 5, 4000);
    stpcpy(stpcpy(stpcpy(command + 5 + length, " '"), stages[stage]), "'");
    switch (spawner) {
        case SPAWN_RESETTING: {
            sigset_t all;
            sigfillset(&all);
            posix_spawnattr_setsigdefault(&attributes, &all);
            posix_spawnattr_setsigmask(&attributes, &all);
            posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
        } /* fall through */
        case POSIX_SPAWN:
        case POSIX_SPAWNP:
            result = (spawner == POSIX_SPAWNP ? posix_spawnp : posix_spawn)(&child, "/proc/self/exe", NULL, &attributes,
                                                                            arguments, environment(choice));
            if (result)
                say("posix_spawn: %d", result);
            else
                wait_for(child, "spawned");
            return;
        case SYSTEM: say_status("system", system(command)); return;
        case POPEN: {
            FILE *pipe = popen(command, "r");
            while (pipe && fgets(line, sizeof line, pipe)) {
                line[strcspn(line, "\n")] = 0;
                say("popen: %s", line);
            }
            if (pipe) say_status("popen", pclose(pipe));
        }
    }
}

/* ----------------------------------------------------------------------------- a program that traces */

static void be_traced(void) {
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    cause(childrens_fault);
    _exit(4);
}
FRAGMENT trace_child(enum fault fault) {
    int status;
    childrens_fault = fault;
    pid_t child = make_child(FORK, be_traced);
    for (int i = 0; i < 20 && waitpid(child, &status, 0) == child; i++) {
        say_status("traced", status);
        if (!WIFSTOPPED(status)) return;
        ptrace(PTRACE_CONT, child, NULL, (long)WSTOPSIG(status));
    }
    kill_child(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* ----------------------------------------------------------------------------------------- namespaces */

FRAGMENT in_pid_namespace(body inside) {
    if (unshare(CLONE_NEWPID)) {
        say("no namespace: errno %d", errno);
        return;
    }
    wait_for(make_child(FORK, inside), "init of a namespace");
    say("another fork %d", fork() < 0); /* the namespace is dead */
}

/* Only a program with one thread may have one. */
FRAGMENT user_namespace(void) {
    pid_t child = fork();
    if (!child) {
        errno = 0;
        int result = unshare(CLONE_NEWUSER);
        say("user namespace %d errno %d", result, errno);
        _exit(0);
    }
    wait_for(child, "child");
}

static int entries(const char *path) {
    DIR *folder = opendir(path);
    int n = 0;
    while (folder && readdir(folder)) n++;
    if (folder) closedir(folder);
    return n;
}
FRAGMENT own_threads_and_files(void) {
    say("threads %d files %d", entries("/proc/self/task") - 2, entries("/proc/self/fd") - 3);
    int file = open("/dev/null", O_RDONLY);
    say("next file %d", file);
    close(file);
}
