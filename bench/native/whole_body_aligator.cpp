// ProxDDP of aligator on recorded ticks of a trot: hard limits of torques, friction pyramids.
//
// usage: program tree problem ticks results iterations repeats
// Results are those of `Answers`, then for each tick the next states of its guess.
#include "aligator_trot.h"

#include <aligator/solvers/proxddp/solver-proxddp.hpp>

// The parameter of the penalty at the beginning, a hundredth of it where rows are further off than
// EXACT at the end of an inner loop, which goes to INNER at once. Of parameters from 1e-4 to 1000 this
// one needs the fewest iterations: with smaller ones steps are shortened, or active rows come and go.
static const double PENALTY = 1000, EXACT = 1e-6, INNER = 1e-6, TOLERANCE = 1e-8;

// After each iteration: the time since the solver began, without that of this record.
struct Watch : al::CallbackBase {
  const al::SolverProxDDP &solver;
  const std::vector<Shared> &motions;
  Answers &answers;
  const Weights &w;

  Watch(const al::SolverProxDDP &of, const std::vector<Shared> &at, Answers &to, const Weights &by)
      : solver(of), motions(at), answers(to), w(by) {}

  void call(const Workspace &, const Results &) override { record(); }

  void record() {
    double now = computed_seconds();
    const al::Results &at = solver.results_;
    std::vector<VectorXd> y;
    for (size_t k = 0; k < motions.size(); k++)
      y.push_back(of_all(at.vs[k], *motions[k], w.control.size(), w.rows));
    answers.add(now, at.traj_cost_, at.xs, at.us, y);
  }
};

// Costates of a guess, which a solver that shifts its own would have. Without them and the
// multipliers it needs more than 15 iterations.
static std::vector<VectorXd> costates_of(const al::TrajOptData &data,
                                         const std::vector<VectorXd> &y) {
  std::vector<VectorXd> costates(data.stage_data.size() + 1);
  costates.back() = data.term_cost_data->Lx_;
  for (size_t k = data.stage_data.size(); k-- > 0;) {
    const al::StageData &at = *data.stage_data[k];
    costates[k] = at.cost_data->Lx_ + at.dynamics_data->Jx().transpose() * costates[k + 1];
    long first = 0;
    for (const auto &rows : at.constraint_data) {
      costates[k] += rows->Jx().transpose() * y[k].segment(first, rows->nr);
      first += rows->nr;
    }
  }
  costates[0] *= -1;  // of x_0's difference from the measured state
  return costates;
}

int main(int argc, char **argv) {
  Task task = read_task(argc, argv);
  const Weights &w = task.w;
  Space space(model);
  std::vector<VectorXd> next;
  for (const Tick &tick : task.ticks) {
    std::vector<Shared> motions;
    std::vector<xyz::polymorphic<al::StageModel>> stages;
    std::vector<VectorXd> y;
    for (int k = 0; k < w.intervals; k++) {
      motions.push_back(std::make_shared<Motion>(space, w, tick.samples[k]));
      stages.push_back(stage_model(space, w, tick.samples[k], motions[k]));
      y.push_back(of_stage(tick.y[k], *motions[k], w.control.size()));
    }
    y.emplace_back(0);
    Tracking end(space, w, tick.samples.back(), nullptr);
    al::TrajOptProblem problem(tick.start, stages, end);
    al::SolverProxDDP solver(TOLERANCE, PENALTY, (size_t)task.iterations);
    solver.inner_tol0 = INNER, solver.prim_tol0 = EXACT;
    solver.force_initial_condition_ = false;  // a step takes the guess's x_0 to the measured one
    solver.setup(problem);
    al::TrajOptData &data = solver.workspace_.problem_data;
    problem.evaluate(tick.x, tick.u, data);
    problem.computeDerivatives(tick.x, tick.u, data);
    for (const auto &stage : data.stage_data) next.push_back(stage->dynamics_data->xnext_);
    std::vector<VectorXd> costates = costates_of(data, y);
    Answers answers(task.iterations);
    auto watch = std::make_shared<Watch>(solver, motions, answers, w);
    solver.registerCallback("watch", watch);
    for (int r = 0; r < task.repeats; r++) {
      solver.linesearch_.reset();
      answers.begin();
      solver.run(problem, tick.x, tick.u, y, costates);
      if (answers.empty()) watch->record();
    }
    answers.write(task.results);
  }
  for (const VectorXd &x : next) write_state(task.results, x);
  return task.results ? 0 : 8;
}
