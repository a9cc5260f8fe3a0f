/* Times MuJoCo's own C for the same quantities: M, qfrc_bias, Jacobians and their rates times qvel.

   usage: program model.xml states.txt count warm_rounds cold_rounds frames...
   Frames are s<id> for a site and b<id> for a body. Prints sums of M and h over slides and
   hinges at the first state, for a comparison of what was computed. */
#include <mujoco/mujoco.h>

#include "timing.h"

#define MOST_FRAMES 64

static mjModel *m;
static mjData *d;
static int frames, is_site[MOST_FRAMES], id[MOST_FRAMES];
static mjtNum *J, *Jdot, J_dot_v[6 * MOST_FRAMES];

static void call(const double *q, const double *v) {
  int i;
  mju_copy(d->qpos, q, m->nq);
  mju_copy(d->qvel, v, m->nv);
  mj_kinematics(m, d);
  mj_comPos(m, d);
  mj_makeM(m, d);
  mj_comVel(m, d);
  mj_rne(m, d, 0, d->qfrc_bias);
  for (i = 0; i < frames; i++) {
    mjtNum *Ji = J + 6 * m->nv * i;
    int body = is_site[i] ? m->site_bodyid[id[i]] : id[i];
    const mjtNum *point = is_site[i] ? d->site_xpos + 3 * id[i] : d->xpos + 3 * id[i];
    if (is_site[i]) mj_jacSite(m, d, Ji, Ji + 3 * m->nv, id[i]);
    else mj_jacBody(m, d, Ji, Ji + 3 * m->nv, id[i]);
    mj_jacDot(m, d, Jdot, Jdot + 3 * m->nv, point, body);
    mju_mulMatVec(J_dot_v + 6 * i, Jdot, v, 6, m->nv);
  }
}

static void print_sums(const double *state) {
  mjtNum *M = (mjtNum *)malloc((size_t)(m->nv * m->nv) * sizeof(mjtNum));
  mjtNum diagonal = 0, bias = 0;
  int j;
  call(state, state + m->nq);
  mj_fullM(m, d, M);
  for (j = 0; j < m->njnt; j++) {
    if (m->jnt_type[j] < mjJNT_SLIDE) continue;
    diagonal += M[m->jnt_dofadr[j] * (m->nv + 1)];
    bias += d->qfrc_bias[m->jnt_dofadr[j]];
  }
  printf("sums %.12g %.12g\n", diagonal, bias);
}

int main(int argc, char **argv) {
  char error[1000] = "";
  double *states;
  int i, count;
  if (argc < 6) return 1;
  m = mj_loadXML(argv[1], NULL, error, sizeof(error));
  if (!m) {
    fprintf(stderr, "%s\n", error);
    return 2;
  }
  d = mj_makeData(m);
  count = atoi(argv[3]);
  frames = argc - 6;
  if (frames > MOST_FRAMES) return 3;
  for (i = 0; i < frames; i++) {
    is_site[i] = argv[6 + i][0] == 's';
    id[i] = atoi(argv[6 + i] + 1);
  }
  J = (mjtNum *)calloc((size_t)(6 * m->nv * (frames + 1)), sizeof(mjtNum));
  Jdot = (mjtNum *)calloc((size_t)(6 * m->nv), sizeof(mjtNum));
  states = read_numbers(argv[2], count * (int)(m->nq + m->nv));
  print_sums(states);
  time_kernel(call, states, count, (int)m->nq, (int)m->nv, atoi(argv[4]), atoi(argv[5]));
  return 0;
}
