// Crocoddyl's FDDP on recorded ticks of a trot: no inequalities.
//
// usage: program tree problem ticks results iterations repeats
// Results are those of `Answers`, then for each tick the next states of its guess.
#include "whole_body.h"

#include <crocoddyl/core/actuation-base.hpp>
#include <crocoddyl/core/activations/weighted-quadratic.hpp>
#include <crocoddyl/core/costs/cost-sum.hpp>
#include <crocoddyl/core/costs/residual.hpp>
#include <crocoddyl/core/integrator/euler.hpp>
#include <crocoddyl/core/residuals/control.hpp>
#include <crocoddyl/core/solvers/fddp.hpp>
#include <crocoddyl/multibody/actions/contact-fwddyn.hpp>
#include <crocoddyl/multibody/contacts/contact-3d.hpp>
#include <crocoddyl/multibody/contacts/multiple-contacts.hpp>
#include <crocoddyl/multibody/residuals/frame-translation.hpp>
#include <crocoddyl/multibody/residuals/state.hpp>

namespace croc = crocoddyl;
template <class T, class... Arguments>
static std::shared_ptr<T> make(Arguments &&...arguments) {
  return std::make_shared<T>(std::forward<Arguments>(arguments)...);
}

// Motors of all joints but the first two, which are those of a free base.
struct Motors : croc::ActuationModelAbstract {
  explicit Motors(std::shared_ptr<croc::StateMultibody> of)
      : croc::ActuationModelAbstract(of, of->get_nv() - 6) {}
  using Shared = std::shared_ptr<croc::ActuationDataAbstract>;
  using Given = Eigen::Ref<const VectorXd>;
  void calc(const Shared &data, const Given &, const Given &u) override {
    data->tau.tail((long)nu_) = u;
  }
  void calcDiff(const Shared &, const Given &, const Given &) override {}
  void commands(const Shared &data, const Given &, const Given &tau) override {
    data->u = tau.tail((long)nu_);
  }
  Shared createData() override {
    auto data = std::make_shared<croc::ActuationDataAbstract>(this);
    data->dtau_du.bottomRows((long)nu_).setIdentity();
    return data;
  }
};

static std::shared_ptr<croc::StateMultibody> state;
static std::shared_ptr<Motors> motors;

static void add(croc::CostModelSum &costs, const char *name, const VectorXd &weights,
                std::shared_ptr<croc::ResidualModelAbstract> residual) {
  auto activation = make<croc::ActivationModelWeightedQuad>(weights);
  costs.addCost(name, make<croc::CostModelResidual>(state, activation, residual), 1.0);
}

static std::shared_ptr<croc::ActionModelAbstract> stage(const Weights &w, const Sample &sample,
                                                        bool end) {
  auto nu = motors->get_nu();
  auto costs = make<croc::CostModelSum>(state, nu);
  auto contacts = make<croc::ContactModelMultiple>(state, nu);
  add(*costs, "state", end ? w.end : w.state, make<croc::ResidualModelState>(state, sample.x, nu));
  if (!end) {
    add(*costs, "control", w.control, make<croc::ResidualModelControl>(state, nu));
    for (int i = 0; i < w.feet; i++) {
      std::string name = "foot" + std::to_string(i);
      Eigen::Vector3d place(0, 0, sample.heights[i]);
      add(*costs, name.c_str(), Eigen::Vector3d(0, 0, w.height),
          make<croc::ResidualModelFrameTranslation>(state, frames[i], place, nu));
      if (sample.on[i] == 0) continue;
      Eigen::Vector2d gains(0, 1 / w.period);
      contacts->addContact(name, make<croc::ContactModel3D>(state, frames[i], place,
                                                            pin::LOCAL_WORLD_ALIGNED, nu, gains));
    }
  }
  auto motion = make<croc::DifferentialActionModelContactFwdDynamics>(state, motors, contacts,
                                                                      costs, 0.0, false);
  return make<croc::IntegratedActionModelEuler>(motion, end ? 0.0 : w.period);
}

// After each iteration: the time since the solver began, without that of this record.
struct Watch : croc::CallbackAbstract {
  Answers &answers;
  explicit Watch(Answers &of) : answers(of) {}
  void operator()(croc::SolverAbstract &solver) override {
    answers.add(computed_seconds(), solver.get_cost(), solver.get_xs(), solver.get_us());
  }
};

int main(int argc, char **argv) {
  Task task = read_task(argc, argv);
  const Weights &w = task.w;
  state = make<croc::StateMultibody>(make<pin::Model>(model));
  motors = make<Motors>(state);
  std::vector<VectorXd> motion;
  for (const Tick &tick : task.ticks) {
    std::vector<std::shared_ptr<croc::ActionModelAbstract>> stages;
    for (int k = 0; k < w.intervals; k++) stages.push_back(stage(w, tick.samples[k], false));
    auto problem =
        make<croc::ShootingProblem>(tick.start, stages, stage(w, tick.samples.back(), true));
    croc::SolverFDDP solver(problem);
    Answers answers(task.iterations);
    solver.set_th_stop(1e-300);
    solver.setCallbacks({make<Watch>(answers)});
    for (int r = 0; r < task.repeats; r++) {
      answers.begin();
      solver.solve(tick.x, tick.u, (size_t)task.iterations, false, 1e-9);
    }
    answers.write(task.results);
    problem->calc(tick.x, tick.u);
    for (const auto &data : problem->get_runningDatas()) motion.push_back(data->xnext);
  }
  for (const VectorXd &x : motion) write_state(task.results, x);
  return task.results ? 0 : 8;
}
