/* Times MuJoCo's mj_forward.

   usage: program model.xml states.txt count rounds
   A state is qpos, qvel, qfrc_applied. Prints the median CPU time of a call, in seconds. */
#include <mujoco/mujoco.h>

#include "timing.h"

int main(int argc, char **argv) {
  char error[1000] = "";
  mjModel *m;
  mjData *d;
  double *states, *samples;
  int count, rounds, round, k, width;
  if (argc != 5) return 1;
  m = mj_loadXML(argv[1], NULL, error, sizeof(error));
  if (!m) {
    fprintf(stderr, "%s\n", error);
    return 2;
  }
  d = mj_makeData(m);
  count = atoi(argv[3]);
  rounds = atoi(argv[4]);
  width = (int)(m->nq + 2 * m->nv);
  states = read_numbers(argv[2], count * width);
  samples = (double *)calloc((size_t)rounds + 1, sizeof(double));
  for (round = -2; round < rounds; round++) {
    double start = computed_seconds();
    for (k = 0; k < count; k++) {
      const double *at = states + k * width;
      mju_copy(d->qpos, at, m->nq);
      mju_copy(d->qvel, at + m->nq, m->nv);
      mju_copy(d->qfrc_applied, at + m->nq + m->nv, m->nv);
      mj_forward(m, d);
    }
    if (round >= 0) samples[round] = (computed_seconds() - start) / count;
  }
  printf("warm %.9g\n", median(samples, rounds));
  return 0;
}
