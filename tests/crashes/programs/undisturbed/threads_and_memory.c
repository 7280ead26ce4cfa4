/* Eight threads and five megabytes, or SIGABRT. */
#include <pthread.h>
#include <stdlib.h>

static pthread_barrier_t all_here;

static void *work(void *unused) {
    pthread_barrier_wait(&all_here);
    return unused;
}

int main(void) {
    pthread_t threads[8];
    pthread_barrier_init(&all_here, NULL, 9);
    for (int i = 0; i < 8; i++)
        if (pthread_create(&threads[i], NULL, work, NULL)) abort();
    char *memory = malloc(5000000);
    if (!memory) abort();
    memory[0] = 1;
    pthread_barrier_wait(&all_here);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    free(memory);
    return 0;
}
