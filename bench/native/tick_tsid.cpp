// Times one control tick of TSID with eiquadprog on the tree that it reads (`pinocchio_tree.h`).
//
// usage: program tree.txt problem.txt states.bin results.bin ticks repeats bytes
//
// The first frame of the tree is held by an SE3 task, each further one is a foot. problem.txt:
// weights of the base and of the posture, kp and kd of both, weight of the contact forces, friction
// coefficient (half width of the pyramid), least normal force of a foot; torque limits, lower then
// upper; weights of the torques, all zero for no such task; feet; for each foot its number of
// points, and the points about its frame; the pose to hold in MuJoCo's order. A state is q and v in
// MuJoCo's order; a result is seconds, status (0 solved), the joints' torques and accelerations.
// Before each tick so many bytes are swept. Conversion of the state is not timed.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <pinocchio/algorithm/joint-configuration.hpp>
#include <tsid/contacts/contact-6d.hpp>
#include <tsid/contacts/contact-point.hpp>
#include <tsid/formulations/inverse-dynamics-formulation-acc-force.hpp>
#include <tsid/robots/robot-wrapper.hpp>
#include <tsid/solvers/solver-HQP-base.hpp>
#include <tsid/solvers/solver-HQP-factory.hxx>
#include <tsid/tasks/task-actuation-bounds.hpp>
#include <tsid/tasks/task-actuation-equality.hpp>
#include <tsid/tasks/task-joint-posture.hpp>
#include <tsid/tasks/task-se3-equality.hpp>

#include "pinocchio_tree.h"
#include "timing.h"

using Robot = tsid::robots::RobotWrapper;
using Eigen::Vector3d;
using Eigen::VectorXd;

static const double MOST_FORCE = 1e6;  // of a foot, N; TSID wants a bound

struct Problem {
  double base_weight, posture_weight, kp, kd, force_weight, friction, least_force;
  VectorXd lower, upper, torque_weights, hold;
  std::vector<Eigen::Matrix3Xd> feet;
};

static VectorXd read_vector(std::istream &in, int size) {
  VectorXd values(size);
  for (int i = 0; i < size; i++) in >> values[i];
  return values;
}

static Problem read_problem(const char *path) {
  std::ifstream in(path);
  Problem p;
  int feet = 0;
  in >> p.base_weight >> p.posture_weight >> p.kp >> p.kd >> p.force_weight >> p.friction;
  in >> p.least_force;
  p.lower = read_vector(in, model.nv - 6);
  p.upper = read_vector(in, model.nv - 6);
  p.torque_weights = read_vector(in, model.nv - 6);
  in >> feet;
  for (int i = 0; i < feet; i++) {
    int points = 0;
    in >> points;
    VectorXd entries = read_vector(in, 3 * points);
    p.feet.push_back(Eigen::Map<Eigen::Matrix3Xd>(entries.data(), 3, points));
  }
  p.hold = read_vector(in, model.nq);
  if (!in || p.feet.size() + 1 != frames.size()) exit(5);
  return p;
}

// The formulation keeps references to its tasks and contacts.
struct Controller {
  Robot robot;
  tsid::InverseDynamicsFormulationAccForce formulation;
  tsid::tasks::TaskSE3Equality base;
  tsid::tasks::TaskJointPosture posture;
  tsid::tasks::TaskActuationBounds bounds;
  tsid::tasks::TaskActuationEquality torques;
  std::vector<std::shared_ptr<tsid::contacts::ContactBase>> contacts;
  std::unique_ptr<tsid::solvers::SolverHQPBase> solver;

  explicit Controller(const Problem &p);
  void add_foot(const Problem &p, size_t i);
};

Controller::Controller(const Problem &p)
    : robot(model, Robot::FLOATING_BASE_SYSTEM),
      formulation("tick", robot),
      base("base", robot, "frame0"),
      posture("posture", robot),
      bounds("bounds", robot),
      torques("torques", robot) {
  VectorXd zero = VectorXd::Zero(model.nv);
  load_state(p.hold.data(), zero.data());
  formulation.computeProblemData(0.0, q, v);
  base.setReference(robot.framePosition(formulation.data(), frames[0]));
  for (size_t i = 0; i < p.feet.size(); i++) add_foot(p, i);
  base.Kp(VectorXd::Constant(6, p.kp));
  base.Kd(VectorXd::Constant(6, p.kd));
  base.useLocalFrame(false);
  formulation.addMotionTask(base, p.base_weight, 1);
  posture.Kp(VectorXd::Constant(robot.na(), p.kp));
  posture.Kd(VectorXd::Constant(robot.na(), p.kd));
  tsid::trajectories::TrajectorySample sample(robot.na());
  sample.setValue(q.tail(robot.na()));
  posture.setReference(sample);
  formulation.addMotionTask(posture, p.posture_weight, 1);
  bounds.setBounds(p.lower, p.upper);
  formulation.addActuationTask(bounds, 1.0, 0);
  if (!p.torque_weights.isZero()) {
    torques.setReference(VectorXd::Zero(robot.na()));
    torques.setWeightVector(p.torque_weights.cwiseSqrt());
    formulation.addActuationTask(torques, 1.0, 1);
  }
  using Factory = tsid::solvers::SolverHQPFactory;
  solver.reset(Factory::createNewSolver(tsid::solvers::SOLVER_HQP_EIQUADPROG_FAST, "solver"));
  solver->resize(formulation.nVar(), formulation.nEq(), formulation.nIn());
}

// A foot of one point moves in three rows; a sole, whose frame is in the middle of a rectangle of
// points, in six. The weights of a sole's wrench are those of its share in the sum of squares of
// the points' forces.
void Controller::add_foot(const Problem &p, size_t i) {
  const Eigen::Matrix3Xd &points = p.feet[i];
  std::string name = "frame" + std::to_string(i + 1);
  Vector3d normal = Vector3d::UnitZ();
  double count = (double)points.cols();
  if (points.cols() == 1) {
    auto contact = std::make_shared<tsid::contacts::ContactPoint>(
        name, robot, name, normal, p.friction, p.least_force, MOST_FORCE);
    VectorXd ones = VectorXd::Ones(3);
    contact->setRegularizationTaskWeightVector(ones);
    contact->useLocalFrame(false);
    contacts.push_back(contact);
  } else {
    auto contact = std::make_shared<tsid::contacts::Contact6d>(
        name, robot, name, points, normal, p.friction, p.least_force, MOST_FORCE);
    double xx = points.row(0).squaredNorm(), yy = points.row(1).squaredNorm();
    VectorXd squares(6);
    squares << count, count, count, yy, xx, xx + yy;
    VectorXd weights = squares.cwiseSqrt().cwiseInverse();
    contact->setRegularizationTaskWeightVector(weights);
    contacts.push_back(contact);
  }
  formulation.addRigidContact(*contacts.back(), p.force_weight);
}

static double sweep(volatile unsigned char *buffer, size_t bytes) {
  double sum = 0;
  for (size_t i = 0; i < bytes; i += 64) sum += ++buffer[i];
  return sum;
}

static std::vector<double> read_states(const char *path, size_t count) {
  std::vector<double> values(count);
  std::ifstream in(path, std::ios::binary);
  if (!in.read((char *)values.data(), (std::streamsize)(count * sizeof(double)))) exit(6);
  return values;
}

int main(int argc, char **argv) {
  if (argc != 8) return 1;
  read_tree(argv[1]);
  q = pin::neutral(model);
  v = VectorXd::Zero(model.nv);
  Controller controller(read_problem(argv[2]));
  int ticks = atoi(argv[5]), repeats = atoi(argv[6]), stride = model.nq + model.nv;
  size_t bytes = (size_t)atol(argv[7]);
  std::vector<double> states = read_states(argv[3], (size_t)ticks * (size_t)stride);
  std::vector<unsigned char> buffer(bytes + 1);
  std::ofstream results(argv[4], std::ios::binary);
  VectorXd torques, accelerations;
  double sum = 0;
  for (int r = 0; r < repeats; r++)
    for (int k = 0; k < ticks; k++) {
      const double *state = states.data() + (size_t)k * (size_t)stride;
      load_state(state, state + model.nq);
      if (bytes) sum += sweep(buffer.data(), bytes);
      double begin = seconds();
      const auto &data = controller.formulation.computeProblemData(k * 1e-3, q, v);
      const auto &solution = controller.solver->solve(data);
      torques = controller.formulation.getActuatorForces(solution);
      double result[2] = {seconds() - begin, (double)solution.status};
      accelerations = controller.formulation.getAccelerations(solution).tail(torques.size());
      std::streamsize size = (std::streamsize)((size_t)torques.size() * sizeof(double));
      results.write((const char *)result, sizeof result);
      results.write((const char *)torques.data(), size);
      results.write((const char *)accelerations.data(), size);
    }
  return sum < 0 || !results ? 7 : 0;
}
