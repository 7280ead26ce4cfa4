/* A child sets a handler, asks for it, and needs it: childs_handlers {fork,bare,clone,vfork}. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void handle(int number) {
    printf("handler of %d\n", number);
    _exit(7);
}

static const char *name(void (*handler)(int)) {
    return handler == handle ? "mine" : handler == SIG_DFL ? "default" : handler == SIG_IGN ? "ignore" : "another";
}

static void child(void) {
    struct sigaction action;
    signal(SIGSEGV, handle);
    sigaction(SIGSEGV, NULL, &action);
    printf("asked: %s\n", name(action.sa_handler));
    printf("replaced: %s\n", name(signal(SIGSEGV, SIG_DFL)));
    signal(SIGSEGV, handle);
    raise(SIGSEGV);
    _exit(3);
}

static void parent(pid_t pid) {
    struct sigaction action;
    int status;
    waitpid(pid, &status, 0);
    sigaction(SIGSEGV, NULL, &action);
    printf("child: code %d signal %d; mine: %s\n", WEXITSTATUS(status), WTERMSIG(status), name(action.sa_handler));
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "fork";
    pid_t pid;
    setvbuf(stdout, NULL, _IONBF, 0);
    if (!strcmp(how, "bare"))
        pid = _Fork();
    else if (!strcmp(how, "clone"))
        pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    else if (!strcmp(how, "vfork"))
        pid = vfork();
    else
        pid = fork();
    if (!pid) child();
    parent(pid);
    return 0;
}
