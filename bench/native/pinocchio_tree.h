// A tree that is read as plain numbers into Pinocchio's model, and states in MuJoCo's order.
//
// tree.txt: joints; then for each joint: parent, kind (0 free, 1 ball, 2 slide, 3 hinge), axis,
// reference, rotation (row by row) and position of its placement, armature, mass, centre of mass,
// inertia about it (xx xy yy xz yz zz); then gravity; then frames; then for each frame: joint,
// rotation, position.
#ifndef MBCASADI_PINOCCHIO_TREE_H
#define MBCASADI_PINOCCHIO_TREE_H

#include <fstream>
#include <string>
#include <vector>

#if __has_include(<pinocchio/multibody.hpp>)  // version 4 on
#include <pinocchio/multibody.hpp>
#else
#include <pinocchio/multibody/data.hpp>
#include <pinocchio/multibody/model.hpp>
#endif

namespace pin = pinocchio;

enum Kind { FREE, BALL, SLIDE, HINGE };

struct Joint {
  Kind kind;
  pin::JointIndex index;
  double reference;
};

static pin::Model model;
static std::vector<Joint> joints;
static std::vector<pin::FrameIndex> frames;
static Eigen::VectorXd q, v;

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
    std::string name = "joint" + std::to_string(i);
    bool free = kind == FREE;
#ifdef FREE_IN_WORLD_AXES
    if (free) {
      above = model.addJoint(above, pin::JointModelTranslation(), placement, name + "_place");
      kind = BALL, placement = pin::SE3::Identity();
      for (int k = 0; k < 3; k++) armature.push_back(rotor);
    }
#endif
    pin::JointIndex index = model.addJoint(above, joint_model(Kind(kind), axis), placement, name);
    pin::Symmetric3 inertia(I[0], I[1], I[2], I[3], I[4], I[5]);
    model.appendBodyToJoint(index, pin::Inertia(mass, com, inertia), pin::SE3::Identity());
    joints.push_back({Kind(free ? FREE : kind), index, reference});
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

// MuJoCo's quaternions are w x y z, Pinocchio's x y z w; its free joint moves in body axes. With
// FREE_IN_WORLD_AXES it is two joints, a translation and a rotation, whose rates are MuJoCo's.
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
      v.segment<3>(dof) = Eigen::Vector3d(v_in[dof], v_in[dof + 1], v_in[dof + 2]);
#ifndef FREE_IN_WORLD_AXES
      v.segment<3>(dof) = (turn.conjugate() * v.segment<3>(dof)).eval();
#endif
      row += 3, dof += 3;
    }
    for (int k = 0; k < 3; k++) q[row + k] = q_in[row + 1 + k];
    q[row + 3] = q_in[row];
    for (int k = 0; k < 3; k++) v[dof + k] = v_in[dof + k];
    row += 4, dof += 3;
  }
}

#endif
