// The stages of a trot for aligator: step, limits, rows and cost.
//
// They share one computation of the constrained dynamics, aligator's, and use how their Jacobians
// are sparse: its own residuals compute the motion again for each friction cone and each foot, and
// its weights are dense matrices.
#ifndef MBCASADI_ALIGATOR_TROT_H
#define MBCASADI_ALIGATOR_TROT_H

#include "whole_body.h"

#include <cmath>

#include <aligator/core/constraint.hpp>
#include <aligator/core/cost-abstract.hpp>
#include <aligator/core/explicit-dynamics.hpp>
#include <aligator/core/stage-data.hpp>
#include <aligator/core/traj-opt-problem.hpp>
#include <aligator/core/vector-space.hpp>
#include <aligator/modelling/constraints.hpp>
#include <aligator/modelling/dynamics/multibody-constraint-fwd.hpp>
#include <aligator/modelling/spaces/multibody.hpp>
#include <aligator/modelling/state-error.hpp>
#include <pinocchio/algorithm/frames.hpp>

namespace al = aligator::context;
using Given = Eigen::Ref<const VectorXd>;
using Eigen::MatrixXd;

static const int SIDES = 4;  // of a pyramid

using Space = aligator::MultibodyPhaseSpace<double>;
using Dynamics = aligator::dynamics::MultibodyConstraintFwdDynamicsTpl<double>;

static Dynamics::RigidConstraintModelVector contacts(const Weights &w, const Sample &sample) {
  Dynamics::RigidConstraintModelVector all;
  for (int i = 0; i < w.feet; i++) {
    if (sample.on[i] == 0) continue;
    const pin::Frame &frame = model.frames[frames[i]];
    all.emplace_back(pin::CONTACT_3D, model, frame.parentJoint, frame.placement,
                     pin::LOCAL_WORLD_ALIGNED);
    all.back().baumgarte_corrector_parameters().Kd = 1 / w.period;
  }
  return all;
}

// The accelerations and forces of a stage, computed by its step and read by its rows and its cost.
struct Motion {
  std::vector<int> feet;  // that are on the ground
  Dynamics dynamics;
  std::shared_ptr<Dynamics::BaseData> data;

  Motion(const Space &space, const Weights &w, const Sample &sample)
      : dynamics(space, MatrixXd::Identity(model.nv, model.nv).rightCols(w.control.size()),
                 contacts(w, sample), pin::ProximalSettings(1e-12, 0.0, 1)),
        data(dynamics.createData()) {
    for (int i = 0; i < w.feet; i++)
      if (sample.on[i] != 0) feet.push_back(i);
  }

  pin::Data &pinocchio() const { return static_cast<Dynamics::Data &>(*data).pin_data_; }
};

using Shared = std::shared_ptr<Motion>;

// The semi-implicit step: v⁺ = v + h a, q⁺ = q ⊕ h v⁺.
struct Step : al::ExplicitDynamics {
  Shared motion;
  double period;

  Step(const Space &space, int nu, Shared of, double h)
      : al::ExplicitDynamics(space, nu), motion(of), period(h) {}

  VectorXd moved(const Given &x) const {
    auto a = motion->data->xdot_.tail(model.nv);
    VectorXd step(2 * model.nv);
    step << period * (x.tail(model.nv) + period * a), period * a;
    return step;
  }

  void forward(const Given &x, const Given &u, Data &data) const override {
    motion->dynamics.forward(x, u, *motion->data);
    space().integrate(x, moved(x), data.xnext_);
  }

  void dForward(const Given &x, const Given &u, Data &data) const override {
    motion->dynamics.dForward(x, u, *motion->data);
    long nv = model.nv;
    auto rates = data.jac_buffer_.bottomRows(nv);
    rates.leftCols(2 * nv) = period * motion->data->Jx_.bottomRows(nv);
    rates.rightCols(nu) = period * motion->data->Ju_.bottomRows(nv);
    rates.middleCols(nv, nv).diagonal().array() += 1;
    data.jac_buffer_.topRows(nv) = period * rates;
    VectorXd step = moved(x);
    space().JintegrateTransport(x, step, data.jac_buffer_, 1);
    space().Jintegrate(x, step, data.Jtmp_xnext, 0);
    data.jac_buffer_.topLeftCorner(nv, nv) += data.Jtmp_xnext.topLeftCorner(nv, nv);
  }
};

// Rows of the pyramids of all feet on the ground, at most zero: their forces act in world axes.
struct Pyramids : al::StageFunction {
  Shared motion;
  Eigen::Matrix<double, SIDES, 3> faces;

  Pyramids(int nu, Shared of, double friction)
      : al::StageFunction(2 * model.nv, nu, SIDES * (int)of->feet.size()), motion(of) {
    for (int i = 0; i < SIDES; i++) {
      double angle = 2 * M_PI * i / SIDES;
      faces.row(i) << std::cos(angle), std::sin(angle), -friction * std::cos(M_PI / SIDES);
    }
  }

  void evaluate(const Given &, const Given &, Data &data) const override {
    for (size_t k = 0; k < motion->feet.size(); k++)
      data.value_.segment<SIDES>(SIDES * (long)k) =
          faces * motion->pinocchio().lambda_c.segment<3>(3 * (long)k);
  }

  void computeJacobians(const Given &, const Given &, Data &data) const override {
    const pin::Data &at = motion->pinocchio();
    long nv = model.nv;
    for (size_t k = 0; k < motion->feet.size(); k++) {
      auto rows = data.jac_buffer_.middleRows<SIDES>(SIDES * (long)k);
      long first = 3 * (long)k;
      rows.leftCols(nv).noalias() = faces * at.dlambda_dq.middleRows<3>(first);
      rows.middleCols(nv, nv).noalias() = faces * at.dlambda_dv.middleRows<3>(first);
      rows.rightCols(nu).noalias() = faces * at.dlambda_dtau.middleRows<3>(first).rightCols(nu);
    }
  }
};

// ½ Σ w r²: of the state's difference from a sample, and where there is a motion of controls and of
// the feet's heights too.
struct Tracking : al::CostAbstract {
  Shared motion;
  const Sample &sample;
  VectorXd of_state, of_control;
  double of_height;

  struct Data : al::CostData {
    VectorXd r, heights;
    MatrixXd turn, lifts;  // slopes of r by rotations of the base, and of heights
    pin::Data::Matrix6x J;
    Data(const Tracking &cost)
        : al::CostData(cost), r(2 * model.nv), heights((long)frames.size()),
          turn(MatrixXd::Zero(2 * model.nv, 2 * model.nv)), lifts((long)frames.size(), model.nv),
          J(pin::Data::Matrix6x::Zero(6, model.nv)) {}
  };

  Tracking(const Space &space, const Weights &w, const Sample &at, Shared of)
      : al::CostAbstract(space, (int)w.control.size()), motion(of), sample(at) {
    double h = of ? w.period : 1;
    of_state = h * (of ? w.state : w.end), of_control = h * w.control, of_height = h * w.height;
  }

  std::shared_ptr<al::CostData> createData() const override {
    return std::make_shared<Data>(*this);
  }

  void evaluate(const Given &x, const Given &u, al::CostData &given) const override {
    Data &data = static_cast<Data &>(given);
    space->difference(sample.x, x, data.r);
    data.value_ = data.r.cwiseAbs2().dot(of_state) / 2;
    if (!motion) return;
    for (long i = 0; i < data.heights.size(); i++) {
      const pin::Frame &frame = model.frames[frames[i]];
      data.heights[i] =
          motion->pinocchio().oMi[frame.parentJoint].act(frame.placement.translation())[2] -
          sample.heights[i];
    }
    data.value_ += (u.cwiseAbs2().dot(of_control) + of_height * data.heights.squaredNorm()) / 2;
  }

  void computeGradients(const Given &x, const Given &u, al::CostData &given) const override {
    Data &data = static_cast<Data &>(given);
    space->Jdifference(sample.x, x, data.turn, 1);
    auto turn = data.turn.block<3, 3>(3, 3);
    data.Lx_ = of_state.cwiseProduct(data.r);
    data.Lx_.segment<3>(3) = (turn.transpose() * data.Lx_.segment<3>(3)).eval();
    if (!motion) return;
    data.Lu_ = of_control.cwiseProduct(u);
    for (long i = 0; i < data.heights.size(); i++) {
      const pin::Frame &frame = model.frames[frames[i]];
      data.J.setZero();
      pin::getFrameJacobian(model, motion->pinocchio(), frame.parentJoint, frame.placement,
                            pin::LOCAL_WORLD_ALIGNED, data.J);
      data.lifts.row(i) = data.J.row(2);
    }
    data.Lx_.head(model.nv).noalias() += of_height * (data.lifts.transpose() * data.heights);
  }

  void computeHessians(const Given &, const Given &, al::CostData &given) const override {
    Data &data = static_cast<Data &>(given);
    long nv = model.nv;
    data.Lxx_.setZero();
    data.Lxx_.diagonal() = of_state;
    auto turn = data.turn.block<3, 3>(3, 3);
    data.Lxx_.block<3, 3>(3, 3) = turn.transpose() * of_state.segment<3>(3).asDiagonal() * turn;
    if (!motion) return;
    data.Luu_.diagonal() = of_control;
    data.Lxx_.topLeftCorner(nv, nv).noalias() += of_height * (data.lifts.transpose() * data.lifts);
  }
};

// Multipliers of a stage: of the limits of torques, then those of the faces of each foot.
static VectorXd of_stage(const VectorXd &every, const Motion &motion, long nu) {
  VectorXd own(nu + SIDES * (long)motion.feet.size());
  own.head(nu) = every.head(nu);
  for (size_t k = 0; k < motion.feet.size(); k++)
    own.segment<SIDES>(nu + SIDES * (long)k) =
        every.segment<SIDES>(nu + SIDES * motion.feet[k]);
  return own;
}

// The same of all feet; those of faces are projected: Newton's may be negative.
static VectorXd of_all(const VectorXd &own, const Motion &motion, long nu, long rows) {
  VectorXd every = VectorXd::Zero(rows);
  every.head(nu) = own.head(nu);
  for (size_t k = 0; k < motion.feet.size(); k++)
    every.segment<SIDES>(nu + SIDES * motion.feet[k]) =
        own.segment<SIDES>(nu + SIDES * (long)k).cwiseMax(0);
  return every;
}

static al::StageModel stage_model(const Space &space, const Weights &w, const Sample &sample,
                                  Shared motion) {
  int nu = (int)w.control.size();
  al::StageModel stage(Tracking(space, w, sample, motion), Step(space, nu, motion, w.period));
  stage.addConstraint(aligator::ControlErrorResidualTpl<double>(2 * model.nv, nu),
                      aligator::BoxConstraintTpl<double>(-w.torque, w.torque));
  if (!motion->feet.empty())
    stage.addConstraint(Pyramids(nu, motion, w.friction), aligator::NegativeOrthantTpl<double>());
  return stage;
}

#endif
