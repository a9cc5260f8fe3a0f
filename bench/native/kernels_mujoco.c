/* Times MuJoCo's own C for the same quantities: M, qfrc_bias, Jacobians and their rates times qvel.

   The rates come from cdof_dot, which mj_comVel has filled: mj_jacDot would form 6 x nv numbers.

   usage: program model.xml states.txt count warm_rounds cold_rounds frames...
   Frames are s<id> for a site and b<id> for a body. Prints M, h and J of slides and
   hinges and J_dot_v at the first state, for a comparison of what was computed. */
#include <mujoco/mujoco.h>

#include "timing.h"

#define MOST_FRAMES 64

static mjModel *m;
static mjData *d;
static int frames, is_site[MOST_FRAMES], id[MOST_FRAMES];
static mjtNum *J, J_dot_v[6 * MOST_FRAMES];

/* Acceleration of a point of a body at zero qacc, linear above angular. */
static void point_bias(mjtNum *bias, int body, const mjtNum *point) {
  mjtNum spatial[6] = {0}, arm[3], speed[3], turned[3];
  const mjtNum *velocity = d->cvel + 6 * body; /* angular, linear at the tree's centre of mass */
  int dof;
  while (body > 0 && m->body_dofnum[body] == 0) body = m->body_parentid[body];
  dof = m->body_dofadr[body] + m->body_dofnum[body] - 1;
  for (; body > 0 && dof >= 0; dof = m->dof_parentid[dof])
    mju_addToScl(spatial, d->cdof_dot + 6 * dof, d->qvel[dof], 6);
  mju_sub3(arm, point, d->subtree_com + 3 * m->body_rootid[body]);
  mju_cross(turned, velocity, arm);
  mju_add3(speed, velocity + 3, turned);
  mju_cross(bias, velocity, speed);
  mju_cross(turned, spatial, arm);
  mju_addTo3(bias, turned);
  mju_addTo3(bias, spatial + 3);
  mju_copy3(bias + 3, spatial);
}

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
    point_bias(J_dot_v + 6 * i, body, point);
  }
}

static int moves_on_axis(int dof) { return m->jnt_type[m->dof_jntid[dof]] >= mjJNT_SLIDE; }

static void print_row(const mjtNum *row) {
  int j;
  for (j = 0; j < m->nv; j++)
    if (moves_on_axis(j)) printf(" %.17g", row[j]);
}

static void print_numbers(const double *state) {
  mjtNum *M = (mjtNum *)malloc((size_t)(m->nv * m->nv) * sizeof(mjtNum));
  int j;
  call(state, state + m->nq);
  mj_fullM(m, d, M);
  printf("M");
  for (j = 0; j < m->nv; j++)
    if (moves_on_axis(j)) print_row(M + j * m->nv);
  printf("\nh");
  print_row(d->qfrc_bias);
  printf("\nJ");
  for (j = 0; j < 6 * frames; j++) print_row(J + j * m->nv);
  printf("\nJ_dot_v");
  for (j = 0; j < 6 * frames; j++) printf(" %.17g", J_dot_v[j]);
  printf("\n");
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
  states = read_numbers(argv[2], count * (int)(m->nq + m->nv));
  print_numbers(states);
  time_kernel(call, states, count, (int)m->nq, (int)m->nv, atoi(argv[4]), atoi(argv[5]));
  return 0;
}
