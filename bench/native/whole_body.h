// The problem of a trot and its recorded ticks, as plain numbers; used by the peers of `whole_body`.
//
// problem.txt: intervals, period, weight of foot heights, friction, feet, ticks, rows; then rows of
// weights: state, control, state at the end; then the largest torque of each joint.
// ticks.bin: for each tick x_0, all x, all u, multipliers of all limits and rows, then for each
// sample the desired x, heights and places of the feet on the ground (zero or one each). States are
// in MuJoCo's order.
//
// The free joint is a translation and a rotation, so that tangents of states are MuJoCo's. Not one
// composite joint: Pinocchio's derivatives take the axes of a joint as fixed in its body.
#ifndef MBCASADI_WHOLE_BODY_H
#define MBCASADI_WHOLE_BODY_H

#define FREE_IN_WORLD_AXES
#include "pinocchio_tree.h"

#include "timing.h"

#include <pinocchio/algorithm/joint-configuration.hpp>

using Eigen::VectorXd;

struct Weights {
  int intervals = 0, feet = 0, ticks = 0, rows = 0;
  double period = 0, height = 0, friction = 0;
  VectorXd state, control, end, torque;
};

struct Sample {
  VectorXd x, heights, on;
};

struct Tick {
  VectorXd start;
  std::vector<VectorXd> x, u, y;
  std::vector<Sample> samples;
};

static Weights read_weights(const char *path) {
  Weights w;
  std::ifstream in(path);
  in >> w.intervals >> w.period >> w.height >> w.friction >> w.feet >> w.ticks >> w.rows;
  long nu = model.nv - 6;
  w.state.resize(2 * model.nv), w.control.resize(nu), w.end.resize(2 * model.nv);
  w.torque.resize(nu);
  for (VectorXd *row : {&w.state, &w.control, &w.end, &w.torque})
    for (double &value : *row) in >> value;
  if (!in) exit(5);
  return w;
}

static VectorXd read_state(const double *&at) {
  VectorXd x(model.nq + model.nv);
  load_state(at, at + model.nq);
  x << q, v;
  at += x.size();
  return x;
}

static VectorXd read_vector(const double *&at, long size) {
  VectorXd values = Eigen::Map<const VectorXd>(at, size);
  at += size;
  return values;
}

static std::vector<Tick> read_ticks(const char *path, const Weights &w) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  std::vector<double> numbers((size_t)in.tellg() / sizeof(double));
  in.seekg(0);
  if (!in.read((char *)numbers.data(), (std::streamsize)(numbers.size() * sizeof(double)))) exit(6);
  const double *at = numbers.data();
  std::vector<Tick> ticks((size_t)w.ticks);
  for (Tick &tick : ticks) {
    tick.start = read_state(at);
    for (int k = 0; k <= w.intervals; k++) tick.x.push_back(read_state(at));
    for (int k = 0; k < w.intervals; k++) tick.u.push_back(read_vector(at, model.nv - 6));
    for (int k = 0; k < w.intervals; k++) tick.y.push_back(read_vector(at, w.rows));
    for (int k = 0; k <= w.intervals; k++) {
      Sample sample;
      sample.x = read_state(at);
      sample.heights = read_vector(at, w.feet);
      sample.on = read_vector(at, w.feet);
      tick.samples.push_back(sample);
    }
  }
  if (at != numbers.data() + numbers.size()) exit(7);
  return ticks;
}

static void write_vector(std::ostream &out, const VectorXd &x) {
  out.write((const char *)x.data(), (std::streamsize)((size_t)x.size() * sizeof(double)));
}

static void write_state(std::ostream &out, const VectorXd &x) {
  std::vector<double> numbers(x.data(), x.data() + x.size());
  std::swap(numbers[3], numbers[6]);  // x y z w, to w x y z
  std::swap(numbers[4], numbers[6]);
  std::swap(numbers[5], numbers[6]);
  for (size_t j = 0; j < joints.size(); j++)
    if (joints[j].kind >= SLIDE) numbers[j + 6] += joints[j].reference;
  write_vector(out, Eigen::Map<VectorXd>(numbers.data(), (long)numbers.size()));
}

// The arguments of a program: tree problem ticks results iterations repeats.
struct Task {
  Weights w;
  std::vector<Tick> ticks;
  std::ofstream results;
  int iterations, repeats;
};

static Task read_task(int argc, char **argv) {
  if (argc != 7) exit(1);
  read_tree(argv[1]);
  q = pin::neutral(model);
  v = VectorXd::Zero(model.nv);
  Weights w = read_weights(argv[2]);
  return {w, read_ticks(argv[3], w), std::ofstream(argv[4], std::ios::binary), atoi(argv[5]),
          atoi(argv[6])};
}

// The iterates of a solver from one guess, which is given to it several times, each with the least
// time that it took to get there. What it does not reach is written as its last one.
class Answers {
 public:
  explicit Answers(int iterations) : iterates((size_t)iterations) {}

  void begin() {
    count = 0;
    start = computed_seconds();
  }

  bool empty() const { return count == 0; }

  void add(double now, double cost, const std::vector<VectorXd> &x, const std::vector<VectorXd> &u,
           const std::vector<VectorXd> &y = {}) {
    if (count == iterates.size()) return;
    Iterate &at = iterates[count++];
    at.time = at.x.empty() ? now - start : std::min(at.time, now - start);
    at.cost = cost, at.x = x, at.u = u, at.y = y;
    reached = std::max(reached, count);
    start += computed_seconds() - now;
  }

  void write(std::ostream &out) const {
    for (size_t k = 0; k < iterates.size(); k++) {
      const Iterate &at = iterates[std::min(k, reached - 1)];
      double head[2] = {at.time, at.cost};
      out.write((const char *)head, sizeof head);
      for (const VectorXd &x : at.x) write_state(out, x);
      for (const VectorXd &u : at.u) write_vector(out, u);
      for (const VectorXd &y : at.y) write_vector(out, y);
    }
  }

 private:
  struct Iterate {
    double time = 0, cost = 0;
    std::vector<VectorXd> x, u, y;
  };
  std::vector<Iterate> iterates;
  size_t count = 0, reached = 0;
  double start = 0;
};

#endif
