// Times Pinocchio's C++ for the same quantities on the same tree (`pinocchio_tree.h`).
//
// usage: program tree.txt states.txt count warm_rounds cold_rounds
//
// Prints sums of M and h over slides and hinges at the first state.
#include <memory>
#include <vector>

#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/frames.hpp>
#include <pinocchio/algorithm/jacobian.hpp>
#include <pinocchio/algorithm/kinematics.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include "pinocchio_tree.h"
#include "timing.h"

static std::unique_ptr<pin::Data> data;
static Eigen::VectorXd zero;
static std::vector<pin::Data::Matrix6x> J;
static std::vector<pin::Motion> J_dot_v;

static void call(const double *q_in, const double *v_in) {
  load_state(q_in, v_in);
  pin::crba(model, *data, q, pin::Convention::WORLD);  // fills the joint Jacobians too
  pin::nonLinearEffects(model, *data, q, v);
  pin::forwardKinematics(model, *data, q, v, zero);
  for (size_t i = 0; i < frames.size(); i++) {
    pin::updateFramePlacement(model, *data, frames[i]);
    pin::getFrameJacobian(model, *data, frames[i], pin::LOCAL_WORLD_ALIGNED, J[i]);
    J_dot_v[i] =
        pin::getFrameClassicalAcceleration(model, *data, frames[i], pin::LOCAL_WORLD_ALIGNED);
  }
}

static void print_sums(const double *state) {
  double diagonal = 0.0, bias = 0.0;
  call(state, state + model.nq);
  for (const Joint &joint : joints) {
    if (joint.kind < SLIDE) continue;
    int dof = model.joints[joint.index].idx_v();
    diagonal += data->M(dof, dof);
    bias += data->nle[dof];
  }
  printf("sums %.12g %.12g\n", diagonal, bias);
}

int main(int argc, char **argv) {
  if (argc != 6) return 1;
  read_tree(argv[1]);
  data.reset(new pin::Data(model));
  q = pin::neutral(model);
  v = zero = Eigen::VectorXd::Zero(model.nv);
  J.assign(frames.size(), pin::Data::Matrix6x::Zero(6, model.nv));
  J_dot_v.assign(frames.size(), pin::Motion::Zero());
  int count = atoi(argv[3]);
  double *states = read_numbers(argv[2], count * (model.nq + model.nv));
  print_sums(states);
  time_kernel(call, states, count, model.nq, model.nv, atoi(argv[4]), atoi(argv[5]));
  return 0;
}
