/* Times the solver that OSQP generates, on recorded bounds: the least time of each in several passes.
 *
 * Each problem starts from the solution of the one before. Writes seconds and x. */
#include <time.h>

#include "osqp.h"
#include "workspace.h"

int time_all(long count, const double *low, const double *high, int passes, double *seconds, double *x) {
  OSQPInt m, n, i;
  int pass, failed = 0;
  long k;
  osqp_get_dimensions(&solver, &m, &n);
  for (pass = 0; pass < passes; ++pass)
    for (k = 0, failed = 0; k < count; ++k) {
      struct timespec begin, end;
      double time;
      clock_gettime(CLOCK_MONOTONIC, &begin);
      osqp_update_data_vec(&solver, NULL, low + k * m, high + k * m);
      osqp_solve(&solver);
      clock_gettime(CLOCK_MONOTONIC, &end);
      time = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
      if (pass == 0 || time < seconds[k]) seconds[k] = time;
      for (i = 0; i < n; ++i) x[k * n + i] = solver.solution->x[i];
      failed += solver.info->status_val != OSQP_SOLVED;
    }
  return failed;
}
