/* Handlers set by the functions of old: sigset, bsd_signal, sigignore, siginterrupt. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

extern sighandler_t bsd_signal(int, sighandler_t);

static void handle(int number) {
    printf("handler of %d\n", number);
    exit(4);
}

static const char *name(sighandler_t handler) {
    return handler == handle ? "mine" : handler == SIG_DFL ? "default" : handler == SIG_IGN ? "ignore" : "another";
}

static void ask(int number) {
    struct sigaction action;
    sigaction(number, NULL, &action);
    printf("%d is %s\n", number, name(action.sa_handler));
}

int main(void) {
    printf("sigset: was %s\n", name(sigset(SIGFPE, handle)));
    ask(SIGFPE);
    printf("bsd_signal: was %s\n", name(bsd_signal(SIGILL, handle)));
    ask(SIGILL);
    printf("sigignore: %d\n", sigignore(SIGTRAP));
    ask(SIGTRAP);
    printf("siginterrupt: %d\n", siginterrupt(SIGBUS, 1));
    ask(SIGBUS);
    fflush(stdout);
    raise(SIGTRAP);
    raise(SIGFPE);
    return 0;
}
