/* Limits, rights and surroundings that change under the program; calls that must fail as they fail alone. */
#include "fragments.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>

static void lower(int which, rlim_t to) {
    struct rlimit limit = {to, to};
    say("setrlimit %d: %d", which, setrlimit(which, &limit));
}

FRAGMENT limit(enum limit which) {
    switch (which) {
        case FILES: lower(RLIMIT_NOFILE, 3); break;
        case FILES_AND_CLOSED:
            lower(RLIMIT_NOFILE, 0);
            close_range(3, ~0u, 0);
            break;
        case STACK: lower(RLIMIT_STACK, 256 << 10); break;
        case ADDRESS_SPACE: lower(RLIMIT_AS, 64 << 20); break;
        case PROCESSES: lower(RLIMIT_NPROC, 1); break;
        case PENDING_SIGNALS: lower(RLIMIT_SIGPENDING, 0); break;
        case CORE: lower(RLIMIT_CORE, 0); break;
        case MEMORY_LOCKED: lower(RLIMIT_MEMLOCK, 0); break;
        case DATA: lower(RLIMIT_DATA, 32 << 20); break;
    }
}

FRAGMENT close_everything(void) { close_range(3, ~0u, 0); }

FRAGMENT close_output_too(void) {
    say("last words");
    for (int file = 0; file < 1024; file++) close(file);
}

/* New files take the lowest numbers; nobody else may be sitting there. */
FRAGMENT occupy_numbers(void) {
    for (int i = 3; i < 20; i++) dup2(1, i);
    say("occupied");
    close_range(3, 19, 0);
    int file = open("/dev/null", O_RDONLY);
    say("next %d", file);
    close(file);
}

FRAGMENT not_dumpable(void) { say("dumpable %d", prctl(PR_SET_DUMPABLE, 0)); }
FRAGMENT no_new_privileges(void) { say("no new privileges %d", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); }
FRAGMENT renamed(void) { prctl(PR_SET_NAME, "other) R 1 name"); }

FRAGMENT other_user(void) {
    errno = 0;
    int group = setgid(65534), user = setuid(65534);
    say("setgid %d setuid %d", group, user);
}

FRAGMENT other_root(void) {
    char folder[] = "root-XXXXXX"; /* in the folder of this run alone */
    if (!mkdtemp(folder)) return;
    int result = chroot(folder);
    if (!result && chdir("/")) say("lost");
    if (result) rmdir(folder);
    say("chroot %d", result);
}

FRAGMENT own_session(void) {
    pid_t child = fork();
    if (!child) {
        say("setsid %d", setsid() == getpid());
        signal(SIGSEGV, SIG_DFL);
        cause(WRITE_NULL);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    say_status("leader", status);
}

/* ------------------------------------------------------------------------------------------ seccomp */

static void filter(struct sock_filter *program, int length) {
    struct sock_fprog whole = {length, program};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    say("seccomp %d", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole));
}

#define CALL BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define OTHERWISE(result) BPF_STMT(BPF_RET | BPF_K, result)

/* What a sandbox lets through that thinks of handlers and nothing else. */
FRAGMENT narrow_sandbox(void) {
    struct sock_filter program[] = {
        CALL,
        ALLOW(write),
        ALLOW(exit_group),
        ALLOW(rt_sigreturn),
        ALLOW(rt_sigaction),
        ALLOW(rt_sigprocmask),
        ALLOW(tgkill),
        ALLOW(getpid),
        ALLOW(gettid),
        ALLOW(sigaltstack),
        OTHERWISE(SECCOMP_RET_KILL_PROCESS),
    };
    filter(program, sizeof program / sizeof *program);
}

FRAGMENT refusing_sandbox(void) {
    struct sock_filter program[] = {
        CALL,
        ALLOW(write),
        ALLOW(exit_group),
        ALLOW(rt_sigreturn),
        ALLOW(rt_sigaction),
        ALLOW(rt_sigprocmask),
        ALLOW(tgkill),
        ALLOW(getpid),
        ALLOW(gettid),
        ALLOW(mmap),
        ALLOW(munmap),
        ALLOW(mprotect),
        OTHERWISE(SECCOMP_RET_ERRNO | EPERM),
    };
    filter(program, sizeof program / sizeof *program);
}

FRAGMENT trapping_sandbox(enum answer answer, action_flags flags) {
    struct sock_filter program[] = {
        CALL,
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sysinfo, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP | 5),
        OTHERWISE(SECCOMP_RET_ALLOW),
    };
    set_handler(SIGACTION, SIGSYS, flags, answer == REPAIR ? RETURN : answer, NULL);
    filter(program, sizeof program / sizeof *program);
    syscall(SYS_sysinfo, NULL);
    say("after the trap");
}

ENDING trapped_without_handler(void) {
    signal(SIGSYS, SIG_DFL);
    trapping_sandbox(RETURN_TO_DEFAULT, 0);
    syscall(SYS_sysinfo, NULL);
}

/* read, write and exit are all that is left. */
ENDING strict_sandbox(void) {
    signal(SIGILL, SIG_DFL);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    say("strict");
    __asm__ volatile("ud2");
}

/* -------------------------------------------------------------------------------------- bad pointers */

FRAGMENT bad_pointers(void) {
    char *bad = (char *)16, byte;
    struct iovec vector = {bad, 10};
    struct stat status;
#define TRY(call)                                \
    do {                                         \
        errno = 0;                               \
        long result = (long)(call);              \
        say(#call ": %d errno %d", (int)result, errno); \
    } while (0)
    TRY(open(bad, O_RDONLY));
    TRY(openat(AT_FDCWD, bad, O_RDONLY));
    TRY(open64(bad, O_RDONLY));
    TRY(creat(bad, 0600));
    TRY(access(bad, R_OK));
    TRY(stat(bad, &status));
    TRY(stat("/", (struct stat *)bad));
    TRY(unlink(bad));
    TRY(rename(bad, "/nowhere"));
    TRY(write(1, bad, 10));
    TRY(writev(1, &vector, 1));
    TRY(read(0, &byte, 0));
    TRY(pipe((int *)bad));
    TRY(mkdir(bad, 0700));
    TRY(chdir(bad));
    TRY(readlink("/proc/self/exe", bad, 10));
    TRY(syscall(SYS_rt_sigaction, SIGUSR1, bad, NULL, 8));
    TRY(syscall(SYS_rt_sigprocmask, SIG_BLOCK, bad, NULL, 8));
    TRY(syscall(SYS_clone3, bad, 88));
    TRY(open(NULL, O_RDONLY));
}

static void bad_action(void) { sigaction(SIGUSR1, (struct sigaction *)16, NULL); }
static void bad_old_action(void) { sigaction(SIGUSR1, NULL, (struct sigaction *)16); }
static void bad_mask(void) { sigprocmask(SIG_BLOCK, (sigset_t *)16, NULL); }
FRAGMENT bad_pointers_in_the_library(void) {
    static const body calls[] = {bad_action, bad_old_action, bad_mask};
    for (int i = 0; i < 3; i++) {
        int status = 0;
        pid_t child = make_child(FORK, calls[i]);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        say_status("bad pointer", status);
    }
}
