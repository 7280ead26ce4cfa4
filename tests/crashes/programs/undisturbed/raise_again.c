/* Handlers that say goodbye and let the signal kill: raise_again {segv,abort}. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void goodbye(int number) {
    puts("goodbye");
    fflush(stdout);
    signal(number, SIG_DFL);
    raise(number);
}

int main(int count, char **words) {
    signal(SIGSEGV, goodbye);
    signal(SIGABRT, goodbye);
    if (count > 1 && !strcmp(words[1], "abort")) abort();
    *(volatile int *)8 = 1;
}
