/* A thread crashes while the first one is about to finish well: it must not get there. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *crash(void *unused) {
    *(volatile int *)8 = 1;
    return unused;
}

int main(int count, char **words) {
    int milliseconds = count > 1 ? atoi(words[1]) : 50;
    pthread_t thread;
    setvbuf(stdout, NULL, _IONBF, 0);
    pthread_create(&thread, NULL, crash, NULL);
    for (int i = 1; i <= milliseconds; i++) {
        usleep(1000);
        if (i >= 20 && i % 5 == 0) printf("%d ms later\n", i);
    }
    puts("finished: the old checkpoint can go");
    return 0;
}
