/* Times the solver above, ours or DAQP, on recorded problems: the least time of each in several passes.
 *
 * A (by columns) and bounds of every problem; `warm`: each problem starts from the active set of the one
 * before, else from none. Writes seconds, x and whether there are active rows. */
#include <time.h>

void time_all(long count, const double *A, const double *low, const double *high, int warm, int passes,
              double *seconds, double *x, int *active) {
  static struct ldp p;
#ifdef WITH_DAQP
  static struct daqp d;
  int exit_flag;
#endif
  long k;
  int i, pass;
  p.limit = LDP_ITERATIONS;
  for (pass = 0; pass < passes; ++pass)
    for (k = 0; k < count; ++k) {
      struct timespec begin, end;
      double time;
#ifdef ROWS
      memcpy(p.A, A + k * ROWS, sizeof p.A);
#endif
      memcpy(p.lba, low + k * LDP_M, sizeof p.lba);
      memcpy(p.uba, high + k * LDP_M, sizeof p.uba);
      if (!warm || k == 0) memset(p.active, 0, sizeof p.active);
      clock_gettime(CLOCK_MONOTONIC, &begin);
#ifdef WITH_DAQP
      daqp_solve(&p, &d, &exit_flag);
#else
      ldp_solve(&p);
#endif
      clock_gettime(CLOCK_MONOTONIC, &end);
      time = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
      if (pass == 0 || time < seconds[k]) seconds[k] = time;
      for (i = 0; i < LDP_N; ++i) x[k * LDP_N + i] = p.x[i];
      for (i = 0, active[k] = 0; i < LDP_M; ++i) active[k] += p.active[i] != 0;
    }
  (void)A;
}
