/* A library takes SIGFPE for the time of each call; the program's own handler of SIGSEGV must stay what it is. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static sigjmp_buf before;
static void recover(int number) { siglongjmp(before, number); }
static void library(int number) { _exit(number); }

int main(int count, char **words) {
    int calls = count > 1 ? atoi(words[1]) : 1000;
    struct sigaction action;
    signal(SIGSEGV, recover);
    for (int i = 0; i < calls; i++) signal(SIGFPE, signal(SIGFPE, library));
    sigaction(SIGSEGV, NULL, &action);
    printf("the handler is still mine: %d\n", action.sa_handler == recover);
    fflush(stdout);
    if (!sigsetjmp(before, 1)) *(volatile int *)8 = 1;
    puts("recovered");
    return 0;
}
