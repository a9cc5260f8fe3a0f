/* Times any generated Function, compiled with -DFUNCTION=its_name, inputs read from a file.

   usage: program states.txt count rounds
   A state is the inputs one after the other, each by columns. Prints the median CPU time of a
   call, caches warm, in seconds. */
#include "timing.h"

typedef long long int casadi_int;

#define JOIN_TEXT(a, b) a##b
#define JOIN(a, b) JOIN_TEXT(a, b)

int FUNCTION(const double **arg, double **res, casadi_int *iw, double *w, int mem);
int JOIN(FUNCTION, _work)(casadi_int *arg, casadi_int *res, casadi_int *iw, casadi_int *w);
casadi_int JOIN(FUNCTION, _n_in)(void);
casadi_int JOIN(FUNCTION, _n_out)(void);
const casadi_int *JOIN(FUNCTION, _sparsity_in)(casadi_int i);
const casadi_int *JOIN(FUNCTION, _sparsity_out)(casadi_int i);

static size_t numel(const casadi_int *sparsity) {
  return (size_t)(sparsity[0] * sparsity[1]);
}

int main(int argc, char **argv) {
  casadi_int sz_arg, sz_res, sz_iw, sz_w, i, n_in = JOIN(FUNCTION, _n_in)();
  const double **arg, *states;
  double **res, *w, *samples;
  casadi_int *iw;
  size_t width = 0;
  int count, rounds, round, k;
  if (argc != 4) return 1;
  count = atoi(argv[2]);
  rounds = atoi(argv[3]);
  JOIN(FUNCTION, _work)(&sz_arg, &sz_res, &sz_iw, &sz_w);
  arg = (const double **)calloc((size_t)sz_arg + 1, sizeof(double *));
  res = (double **)calloc((size_t)sz_res + 1, sizeof(double *));
  iw = (casadi_int *)calloc((size_t)sz_iw + 1, sizeof(casadi_int));
  w = (double *)calloc((size_t)sz_w + 1, sizeof(double));
  for (i = 0; i < n_in; i++) width += numel(JOIN(FUNCTION, _sparsity_in)(i));
  for (i = 0; i < JOIN(FUNCTION, _n_out)(); i++)
    res[i] = (double *)calloc(numel(JOIN(FUNCTION, _sparsity_out)(i)) + 1, sizeof(double));
  states = read_numbers(argv[1], count * (int)width);
  samples = (double *)calloc((size_t)rounds + 1, sizeof(double));
  for (round = -2; round < rounds; round++) {
    double start = computed_seconds();
    for (k = 0; k < count; k++) {
      const double *at = states + (size_t)k * width;
      for (i = 0; i < n_in; at += numel(JOIN(FUNCTION, _sparsity_in)(i)), i++) arg[i] = at;
      FUNCTION(arg, res, iw, w, 0);
    }
    if (round >= 0) samples[round] = (computed_seconds() - start) / count;
  }
  printf("warm %.9g\n", median(samples, rounds));
  return 0;
}
