// Times Pinocchio's dynamics of a tree that it reads (`pinocchio_tree.h`), or their derivatives.
//
// usage: program tree.txt states.txt count rounds kinds what
//
// A state is q, v and the applied force. Each frame of the tree is held to the world: its place in
// the text `kinds` is 3 for its origin, 6 for its whole motion; none is "-". What is timed is
//   dynamics     constraintDynamics
//   derivatives  the same with its derivatives; computeABADerivatives where nothing is held
//   inverse      computeRNEADerivatives, the force in place of the acceleration
// Prints the sum of the accelerations of slides and hinges at the first state; for derivatives that
// of the diagonal of M over them.
#include <cstring>
#include <memory>
#include <vector>

#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/constrained-dynamics-derivatives.hpp>
#include <pinocchio/algorithm/constrained-dynamics.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>

#include "pinocchio_tree.h"
#include "timing.h"

using ConstraintModels = std::vector<pin::RigidConstraintModel,
                                     Eigen::aligned_allocator<pin::RigidConstraintModel>>;
using ConstraintDatas = std::vector<pin::RigidConstraintData,
                                    Eigen::aligned_allocator<pin::RigidConstraintData>>;

static std::unique_ptr<pin::Data> data;
static ConstraintModels constraints;
static ConstraintDatas constraint_data;
static Eigen::VectorXd f;
static pin::ProximalSettings settings(1e-12, 0.0, 1);  // one step, nothing added to the rows

// The force follows v; its first three entries on a free joint are in world axes, as those of v.
static void load(const double *q_in, const double *v_in) {
  load_state(q_in, v_in + model.nv);
  f = v;
  load_state(q_in, v_in);
}

static void dynamics(const double *q_in, const double *v_in) {
  load(q_in, v_in);
  pin::constraintDynamics(model, *data, q, v, f, constraints, constraint_data, settings);
}

static void derivatives(const double *q_in, const double *v_in) {
  load(q_in, v_in);
  if (constraints.empty()) {
    pin::computeABADerivatives(model, *data, q, v, f);
    return;
  }
  pin::constraintDynamics(model, *data, q, v, f, constraints, constraint_data, settings);
  pin::computeConstraintDynamicsDerivatives(model, *data, constraints, constraint_data, settings);
}

static void inverse(const double *q_in, const double *v_in) {
  load(q_in, v_in);
  pin::computeRNEADerivatives(model, *data, q, v, f);
}

static void print_sum(const double *state, bool of_motion) {
  double sum = 0.0;
  dynamics(state, state + model.nq);
  pin::crba(model, *data, q);
  for (const Joint &joint : joints) {
    if (joint.kind < SLIDE) continue;
    int dof = model.joints[joint.index].idx_v();
    sum += of_motion ? data->ddq[dof] : data->M(dof, dof);
  }
  printf("sums %.12g\n", sum);
}

int main(int argc, char **argv) {
  if (argc != 7) return 1;
  read_tree(argv[1]);
  if (!strcmp(argv[5], "-")) argv[5][0] = 0;
  if (strlen(argv[5]) != frames.size()) return 5;
  const bool of_motion = !strcmp(argv[6], "dynamics");
  kernel_call call = of_motion ? dynamics : !strcmp(argv[6], "inverse") ? inverse : derivatives;
  data.reset(new pin::Data(model));
  q = pin::neutral(model);
  v = f = Eigen::VectorXd::Zero(model.nv);
  for (size_t i = 0; i < frames.size(); i++) {
    const pin::Frame &frame = model.frames[frames[i]];
    pin::ContactType type = argv[5][i] == '6' ? pin::CONTACT_6D : pin::CONTACT_3D;
    constraints.emplace_back(type, model, frame.parentJoint, frame.placement);
    constraint_data.emplace_back(constraints.back());
  }
#if __has_include(<pinocchio/multibody.hpp>)  // version 4 on
  pin::initConstraintDynamics(model, *data, constraints, constraint_data);
#else
  pin::initConstraintDynamics(model, *data, constraints);
#endif
  int count = atoi(argv[3]);
  double *states = read_numbers(argv[2], count * (model.nq + 2 * model.nv));
  print_sum(states, of_motion);
  time_kernel(call, states, count, model.nq, 2 * model.nv, atoi(argv[4]), 1);
  return 0;
}
