/* Times the generated C of this package: kernels(q, v) -> (M, h, J..., J_dot_v...).

   usage: program states.txt count nq nv warm_rounds cold_rounds */
#include "timing.h"

typedef long long int casadi_int;

int kernels(const double **arg, double **res, casadi_int *iw, double *w, int mem);
int kernels_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw, casadi_int *sz_w);
casadi_int kernels_n_out(void);
const casadi_int *kernels_sparsity_out(casadi_int i);

static const double **arg;
static double **res, *w;
static casadi_int *iw;

static void call(const double *q, const double *v) {
  arg[0] = q;
  arg[1] = v;
  kernels(arg, res, iw, w, 0);
}

int main(int argc, char **argv) {
  casadi_int sz_arg, sz_res, sz_iw, sz_w, i;
  int count = atoi(argv[2]), nq = atoi(argv[3]), nv = atoi(argv[4]);
  if (argc != 7) return 1;
  kernels_work(&sz_arg, &sz_res, &sz_iw, &sz_w);
  arg = (const double **)calloc((size_t)sz_arg + 1, sizeof(double *));
  res = (double **)calloc((size_t)sz_res + 1, sizeof(double *));
  iw = (casadi_int *)calloc((size_t)sz_iw + 1, sizeof(casadi_int));
  w = (double *)calloc((size_t)sz_w + 1, sizeof(double));
  for (i = 0; i < kernels_n_out(); i++) {
    const casadi_int *sparsity = kernels_sparsity_out(i);
    res[i] = (double *)calloc((size_t)(sparsity[0] * sparsity[1]) + 1, sizeof(double));
  }
  time_kernel(call, read_numbers(argv[1], count * (nq + nv)), count, nq, nv, atoi(argv[5]),
              atoi(argv[6]));
  return 0;
}
