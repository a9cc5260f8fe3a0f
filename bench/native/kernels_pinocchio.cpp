// Times Pinocchio's C++ for the same quantities on the same tree (`pinocchio_tree.h`).
//
// usage: program tree.txt states.txt count warm_rounds cold_rounds
//
// crba fills the joint Jacobians, and nonLinearEffects the velocities and the accelerations at zero
// joint acceleration relative to gravity, from which J_dot_v follows without a further pass.
// Prints M, h and J of slides and hinges and J_dot_v at the first state.
#include <algorithm>
#include <memory>
#include <vector>

#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/frames.hpp>
#include <pinocchio/algorithm/jacobian.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include "pinocchio_tree.h"
#include "timing.h"

static std::unique_ptr<pin::Data> data;
static std::vector<pin::Data::Matrix6x> J;
static std::vector<pin::Motion> J_dot_v;

static pin::Motion frame_bias(pin::FrameIndex index) {
  const pin::Frame &frame = model.frames[index];
  const pin::Motion velocity = frame.placement.actInv(data->v[frame.parentJoint]);
  const pin::Motion lifted = frame.placement.actInv(data->a_gf[frame.parentJoint]);
  const Eigen::Matrix3d &R = data->oMf[index].rotation();
  return pin::Motion(model.gravity.linear() +
                         R * (lifted.linear() + velocity.angular().cross(velocity.linear())),
                     R * lifted.angular());
}

static void call(const double *q_in, const double *v_in) {
  load_state(q_in, v_in);
  pin::crba(model, *data, q, pin::Convention::WORLD);  // fills the joint Jacobians too
  pin::nonLinearEffects(model, *data, q, v);
  for (size_t i = 0; i < frames.size(); i++) {
    pin::updateFramePlacement(model, *data, frames[i]);
    pin::getFrameJacobian(model, *data, frames[i], pin::LOCAL_WORLD_ALIGNED, J[i]);
    J_dot_v[i] = frame_bias(frames[i]);
  }
}

static void print_numbers(const double *state) {
  std::vector<int> dofs;
  call(state, state + model.nq);
  for (const Joint &joint : joints)
    if (joint.kind >= SLIDE) dofs.push_back(model.joints[joint.index].idx_v());
  printf("M");
  for (int row : dofs)
    for (int col : dofs) printf(" %.17g", data->M(std::min(row, col), std::max(row, col)));
  printf("\nh");
  for (int dof : dofs) printf(" %.17g", data->nle[dof]);
  printf("\nJ");
  for (const auto &jacobian : J)
    for (int row = 0; row < 6; row++)
      for (int dof : dofs) printf(" %.17g", jacobian(row, dof));
  printf("\nJ_dot_v");
  for (const pin::Motion &bias : J_dot_v)
    for (int row = 0; row < 6; row++) printf(" %.17g", bias.toVector()[row]);
  printf("\n");
}

int main(int argc, char **argv) {
  if (argc != 6) return 1;
  read_tree(argv[1]);
  data.reset(new pin::Data(model));
  q = pin::neutral(model);
  v = Eigen::VectorXd::Zero(model.nv);
  J.assign(frames.size(), pin::Data::Matrix6x::Zero(6, model.nv));
  J_dot_v.assign(frames.size(), pin::Motion::Zero());
  int count = atoi(argv[3]);
  double *states = read_numbers(argv[2], count * (model.nq + model.nv));
  print_numbers(states);
  time_kernel(call, states, count, model.nq, model.nv, atoi(argv[4]), atoi(argv[5]));
  return 0;
}
