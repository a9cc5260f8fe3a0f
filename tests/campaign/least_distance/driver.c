/* Solves many problems with the solver of the generated C, which stands above.
 *
 * A by columns; `warm` may be null. Writes x, multipliers, active set, flag, iterations and, where a
 * problem is infeasible, the numbers of the proof. */
void solve_all(long count, const double *A, const double *low, const double *high,
               const double *warm, int limit, double *x, double *lam, double *active, int *flag,
               int *iterations, double *ray) {
  static struct ldp p;
  long k;
  int i;
  for (k = 0; k < count; ++k) {
    for (i = 0; i < LDP_M * LDP_N; ++i) p.A[i] = (ldp_real)A[i];
    for (i = 0; i < LDP_M; ++i) {
      p.lba[i] = (ldp_real)low[i];
      p.uba[i] = (ldp_real)high[i];
      p.active[i] = warm ? (ldp_real)warm[i] : 0;
      ray[i] = 0;
    }
    for (i = 0; i < LDP_N; ++i) p.x[i] = NAN; /* what a solver must not read */
    p.limit = limit;
    flag[k] = ldp_solve(&p);
    iterations[k] = p.iterations;
    for (i = 0; i < LDP_N; ++i) x[i] = p.x[i];
    for (i = 0; i < LDP_M; ++i) {
      lam[i] = p.lam_a[i];
      active[i] = p.active[i];
    }
    if (flag[k] == LDP_INFEASIBLE && p.entering >= 0) {
      ray[p.entering] = -p.proof;
      for (i = 0; i < p.count; ++i) ray[p.row[i]] = -p.multiplier[i];
    }
    A += LDP_M * LDP_N, low += LDP_M, high += LDP_M, x += LDP_N, lam += LDP_M, active += LDP_M;
    ray += LDP_M;
    if (warm) warm += LDP_M;
  }
}
