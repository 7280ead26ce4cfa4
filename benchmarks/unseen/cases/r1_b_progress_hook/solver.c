typedef void (*progress_fn)(int step, double residual);
static progress_fn on_progress;

void solver_set_progress(progress_fn fn) { on_progress = fn; }

double solver_run(double *x, long n, int steps) {
  double residual = 0;
  for (int s = 0; s < steps; s++) {
    residual = 0;
    for (long i = 1; i + 1 < n; i++) {
      double d = 0.5 * (x[i - 1] + x[i + 1]) - x[i];
      x[i] += d;
      residual += d < 0 ? -d : d;
    }
    if (on_progress && s % 10 == 0) on_progress(s, residual);
  }
  return residual;
}
