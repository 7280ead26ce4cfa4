/* What a handler is told of stacks and masks. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

static char room[1 << 18];

static void look(int number, siginfo_t *info, void *context) {
    stack_t now, mine = {.ss_sp = room, .ss_size = sizeof room};
    ucontext_t *interrupted = context;
    sigset_t mask;
    sigaltstack(NULL, &now);
    printf("signal %d code %d\n", number, info->si_code);
    printf("context: flags %d size %zu; now: flags %d\n", interrupted->uc_stack.ss_flags, interrupted->uc_stack.ss_size,
           now.ss_flags);
    printf("a new stack: %s\n", sigaltstack(&mine, NULL) ? strerror(errno) : "taken");
    sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int i = 1; i < NSIG; i++)
        if (sigismember(&mask, i) == 1) printf("blocked: %d\n", i);
    fflush(stdout);
    _Exit(5);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = look, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    *(volatile int *)8 = 1;
}
