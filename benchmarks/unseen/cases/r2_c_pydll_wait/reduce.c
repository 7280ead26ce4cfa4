#include <pthread.h>

typedef double (*shard_fn)(int);
struct job { shard_fn fn; int index; double result; };

static void *work(void *arg) {
    struct job *j = arg;
    j->result = j->fn(j->index);
    return 0;
}

double parallel_sum(shard_fn fn, int n) {
    pthread_t threads[64];
    struct job jobs[64];
    double sum = 0;
    for (int i = 0; i < n; i++) {
        jobs[i].fn = fn;
        jobs[i].index = i;
        pthread_create(&threads[i], 0, work, &jobs[i]);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i], 0);
        sum += jobs[i].result;
    }
    return sum;
}
