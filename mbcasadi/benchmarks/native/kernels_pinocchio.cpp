// Times Pinocchio's C++ for the same quantities on the same tree, which it reads as plain numbers.
//
// usage: program tree.txt states.txt count warm_rounds cold_rounds
//
// tree.txt: joints; then for each joint: parent, kind (0 free, 1 ball, 2 slide, 3 hinge), axis,
// reference, rotation (row by row) and position of its placement, armature, mass, centre of mass,
// inertia about it (xx xy yy xz yz zz); then gravity; then frames; then for each frame: joint,
// rotation, position. Prints sums of M and h over slides and hinges at the first state.
#include <fstream>
#include <memory>
#include <vector>

#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/frames.hpp>
#include <pinocchio/algorithm/jacobian.hpp>
#include <pinocchio/algorithm/kinematics.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#if __has_include(<pinocchio/multibody.hpp>)  // version 4 on
#include <pinocchio/multibody.hpp>
#else
#include <pinocchio/multibody/data.hpp>
#include <pinocchio/multibody/model.hpp>
#endif

#include "timing.h"

namespace pin = pinocchio;

enum Kind { FREE, BALL, SLIDE, HINGE };

struct Joint {
  Kind kind;
  pin::JointIndex index;
  double reference;
};

static pin::Model model;
static std::unique_ptr<pin::Data> data;
static std::vector<Joint> joints;
static std::vector<pin::FrameIndex> frames;
static Eigen::VectorXd q, v, zero;
static std::vector<pin::Data::Matrix6x> J;
static std::vector<pin::Motion> J_dot_v;

static pin::JointModel joint_model(Kind kind, const Eigen::Vector3d &axis) {
  if (kind == FREE) return pin::JointModelFreeFlyer();
  if (kind == BALL) return pin::JointModelSpherical();
  for (int k = 0; k < 3; k++) {
    if (axis != Eigen::Vector3d::Unit(k)) continue;
    if (kind == SLIDE)
      return k == 0   ? pin::JointModel(pin::JointModelPX())
             : k == 1 ? pin::JointModel(pin::JointModelPY())
                      : pin::JointModel(pin::JointModelPZ());
    return k == 0   ? pin::JointModel(pin::JointModelRX())
           : k == 1 ? pin::JointModel(pin::JointModelRY())
                    : pin::JointModel(pin::JointModelRZ());
  }
  if (kind == SLIDE) return pin::JointModelPrismaticUnaligned(axis);
  return pin::JointModelRevoluteUnaligned(axis);
}

static pin::SE3 read_pose(std::istream &in) {
  pin::SE3 pose;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) in >> pose.rotation()(i, j);
  for (int i = 0; i < 3; i++) in >> pose.translation()[i];
  return pose;
}

static void read_tree(const char *path) {
  std::ifstream in(path);
  int count = 0;
  in >> count;
  std::vector<double> armature;
  for (int i = 0; i < count; i++) {
    int parent, kind;
    double reference, rotor, mass, I[6];
    Eigen::Vector3d axis, com;
    in >> parent >> kind >> axis[0] >> axis[1] >> axis[2] >> reference;
    pin::SE3 placement = read_pose(in);
    in >> rotor >> mass >> com[0] >> com[1] >> com[2];
    for (double &value : I) in >> value;
    pin::JointIndex above = parent < 0 ? 0 : joints[parent].index;
    pin::JointIndex index = model.addJoint(above, joint_model(Kind(kind), axis), placement,
                                           "joint" + std::to_string(i));
    pin::Symmetric3 inertia(I[0], I[1], I[2], I[3], I[4], I[5]);
    model.appendBodyToJoint(index, pin::Inertia(mass, com, inertia), pin::SE3::Identity());
    joints.push_back({Kind(kind), index, reference});
    for (int k = 0; k < model.joints[index].nv(); k++) armature.push_back(rotor);
  }
  model.armature = Eigen::Map<Eigen::VectorXd>(armature.data(), armature.size());
  Eigen::Vector3d gravity;
  in >> gravity[0] >> gravity[1] >> gravity[2] >> count;
  model.gravity.linear() = gravity;
  for (int i = 0; i < count; i++) {
    int joint;
    in >> joint;
    pin::SE3 pose = read_pose(in);
    pin::JointIndex index = joint < 0 ? 0 : joints[joint].index;
    frames.push_back(model.addFrame(
        pin::Frame("frame" + std::to_string(i), index, 0, pose, pin::OP_FRAME)));
  }
  if (!in) exit(4);
}

// MuJoCo's quaternions are w x y z, Pinocchio's x y z w; its free joint moves in body axes.
static void load_state(const double *q_in, const double *v_in) {
  int row = 0, dof = 0;
  for (const Joint &joint : joints) {
    if (joint.kind >= SLIDE) {
      q[row] = q_in[row] - joint.reference;
      v[dof] = v_in[dof];
      row++, dof++;
      continue;
    }
    if (joint.kind == FREE) {
      for (int k = 0; k < 3; k++) q[row + k] = q_in[row + k];
      Eigen::Quaterniond turn(q_in[row + 3], q_in[row + 4], q_in[row + 5], q_in[row + 6]);
      v.segment<3>(dof) =
          turn.conjugate() * Eigen::Vector3d(v_in[dof], v_in[dof + 1], v_in[dof + 2]);
      row += 3, dof += 3;
    }
    for (int k = 0; k < 3; k++) q[row + k] = q_in[row + 1 + k];
    q[row + 3] = q_in[row];
    for (int k = 0; k < 3; k++) v[dof + k] = v_in[dof + k];
    row += 4, dof += 3;
  }
}

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
