#include <x86intrin.h>

void axpy(double a, const double *x, double *y, long n) {
    __m256d va = _mm256_set1_pd(a);
    long i = 0;
    for (; i + 4 <= n; i += 4)
        _mm256_storeu_pd(y + i, _mm256_macc_pd(va, _mm256_loadu_pd(x + i), _mm256_loadu_pd(y + i)));
    for (; i < n; i++)
        y[i] += a * x[i];
}
