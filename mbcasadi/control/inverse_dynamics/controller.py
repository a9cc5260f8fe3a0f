"""Inverse dynamics within torque limits and friction cones, for any constrained mechanism."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Unpack

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.control.inverse_dynamics.call_inputs import TickInputs, call_inputs
from mbcasadi.control.inverse_dynamics.description import controller_data
from mbcasadi.control.inverse_dynamics.explaining.bad_inputs import bad_inputs
from mbcasadi.control.inverse_dynamics.explaining.explanation import (
    Explanation,
    explanation,
    lacking,
    task_shares,
)
from mbcasadi.control.inverse_dynamics.floating_base import doubt_of_base
from mbcasadi.control.inverse_dynamics.inspection import (
    inspection_fun,
    monitor_fun,
    monitor_stages,
)
from mbcasadi.control.inverse_dynamics.instant_nlp import InstantNLP, instant_nlp
from mbcasadi.control.inverse_dynamics.options import Array, Setup
from mbcasadi.control.inverse_dynamics.parts.missed_tasks import missed_by
from mbcasadi.control.inverse_dynamics.scales import ForceWeights
from mbcasadi.control.inverse_dynamics.secondary_rows import secondary_rows
from mbcasadi.control.inverse_dynamics.solution import CondensedQP, InverseDynamicsSolution
from mbcasadi.control.inverse_dynamics.solution_of_outputs import solution_of
from mbcasadi.control.inverse_dynamics.tick import Stages, make_stages
from mbcasadi.control.inverse_dynamics.viability import Viability
from mbcasadi.control.limits.soft_limits import soft_rows
from mbcasadi.description import Controller
from mbcasadi.description.status import Status
from mbcasadi.errors import ProblemError
from mbcasadi.progress import logged_time
from mbcasadi.qp.solver import candidate_fun, controller_fun, solution_fun
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import require_name
from mbcasadi.short_text import summarised

_log = logging.getLogger(__name__)


@summarised
@readable_fields
@dataclass(frozen=True, eq=False, repr=False)
class InverseDynamicsQP(Setup):
    """`min Σ |J a + c - a_des|²_W` over what motors, loops, passive joints and contacts allow.

    The law solves, at every tick and for any rank of its constraints,

        M a + h = f_passive + actuator force + Aᵀ lam + J_cᵀ f,   A a + c = 0,   J_c a + c_c = 0

    for the controls u, with actuator forces and controls within their limits and every contact
    force f inside its friction cone or a pyramid, `Contact.cone`. Acceleration, multipliers and
    dependent rows are eliminated first (`condensed_dynamics.py`); the remaining QP has
    inequalities only, and its solution is checked on the original equations before it is used
    (`residuals.py`).

    Its Function is `(q, v, [act], [f_measured], ref, [tuning], [p], mask, z) → (u, z_next, status,
    flags, residual, [levels], [relaxed, slack])`:

    - `ref`: the tasks' references; `reference_slices` names their slices, `reference_at(q)`
      holds q at rest, `reference(...)` fills them by name.
    - `tuning`: what `tunable` names, with the names and defaults of `tuning`.
    - `mask`: one entry for each contact, then one for each equality constraint, 1 for on. It
      switches rows of the same problem: sizes do not change.
    - `z`: the active set, what the safe output remembers, then the parts of `memory_parts`.
      Any content is accepted.
    - `status`: 0 solved and verified; 1 feasible, not optimal; 2 infeasible; 3 bad input (NaN,
      infinity); 4 failed check. From 2 on, u is the fallback.
    - `residual`: (5,) dynamics, constraint, primal, stationarity, complementarity, relative.
    - `levels`: one more output with `levels`: `|J a + c - a_des|_W` of each of them.

    u never leaves its limits, whatever the inputs are. `export_c` turns the law into C.

    Args:
        system: the mechanism.
        tasks: the desired motions, `PostureTask`, `FrameTask` or your own `Task`.
        contacts: points that push on the world or on another body, each with a friction cone:
            sites, bodies, geoms, or frames of `System.with_frame`.
        levels: names of tasks, level by level: `[["feet", "com"], ["trunk"], ["posture"]]`. Each
            level is met as well as those before it and the limits allow, none gives up anything
            for a later one; the regularisation is the last level. Tasks of one level are weighted
            against each other, those of the first one against the prices of soft limits too. None:
            all tasks are weighted against each other and against the regularisation. See
            `priorities/cascade.py`.
        level_damping: share of its usual strength below which a direction of a level is damped and
            left to later levels, step by step; see `priorities/level_factor.py`.
        torque_weight: weight of the actuator forces p (N or N m), relative and positive, a number
            or one for each actuator: the cost is `½ Σ r_i (p_i - p_ref,i)²` with
            `r_i = torque_weight_i · τ² / I_i`, where I_i is the inertia that actuator i sees and τ²
            the tasks' cost of a unit acceleration `aᵀ M a = 1`, both means over poses. It selects
            among forces that cause no motion, and biases the tasks by about this share.
        torque_rate_weight: the same of `p - p_last`, the change since the last tick; zero for none.
        torque_reference: read `p_ref` from the slice "torque" of `ref`; else it is zero.
        internal_forces: "body": the load of several points on one body is distributed freely
            within their cones; "none": by the least squares of their forces; "wrench": a flat foot
            has one wrench within the cone that its corners give, with fewer unknowns. It is on
            where all its corners are, and has the normal of its sole; see `contacts/soles.py`.
        internal_force_weight: the same of these internal forces.
        force_weight: r_f of `½ Σ r_f (f - f_ref)²` on contact forces, zero for none: a number,
            three for n, t1, t2 of every contact, or three for each contact. None: along the ground
            for contacts that creep in MuJoCo (soft `solimp`, low `impratio`); see `creeping.py`.
        loop_force_weights: `LoopForceWeights`, the same cost on forces of equality constraints, by
            their names; none unless given.
        force_reference: read `f_ref` (n, t1, t2 of each contact) from the slice "force" of
            `ref`, and that of loops from "loop_force"; else it is zero. It needs a weight.
        force_feedback: `ForceFeedback` of measured forces, a further input `f_measured`: n, t1, t2
            of each contact, then the loop forces with a weight. No steady error of the forces with
            a weight is left; none unless given.
        ctrl_limits, force_limits: (nu, 2) limits of u, and of the actuator forces, instead of
            the model's. Ranges of summed forces on joints and tendons always hold.
        joint_limits: `JointLimits` of positions, velocities and accelerations of joints; none
            unless given. They are viable: a joint can always stop before its stop.
        bound_errors: errors of tasks enter no larger than joints with limits can follow, see
            `followed_errors.py`. None: where there are `joint_limits`; False: as they are.
        observer: `DisturbanceObserver` of what the model lacks (mass, load, friction, pushes): no
            steady error is left; none unless given. Its state is part of `z`.
        soft: `SoftLimit`s: rows that may be violated at a price, "joints", "normal forces",
            "friction" or rows by name. Two more outputs say which were: `relaxed`, a bit for each
            soft row, and `slack`, by how much.
        servo_plant: how servos change their force while a control acts, which adds to the inertia:
            "model", by the model's integrator and time step; "continuous", a real robot;
            MuJoCo's "euler", "rk4", "implicit", "implicitfast", "discrete"; "start", not at
            all. Motors are the same in all of them. See `servo_map.py`.
        servo_timestep: s, of the plant's steps between two ticks; the model's by default, or the
            period where that is no multiple of it.
        delay: ticks from a measurement to the moment at which its control acts, beside the delay
            that the model's actuators have of their own; servos, joints with limits and the
            observer take account of both. `validate` fills in its own where none is
            given; `export_c` exports 0 then: give the robot's.
        friction_loss: `FrictionLoss` of joints, dry friction that counts in the equations; none
            unless given.
        rigid_springs: `RigidSprings` that the law holds at their present deflection, stiff ones
            between motors and loads; none unless given.
        load_ramp: `LoadRamp`, by which a contact that is switched on takes its load; none unless
            given.
        loop_force_limits: `LoopForceLimits` of the forces of equality constraints, by their names.
        sharing: `LoadSharing` of loads that the motion does not determine. None: dependent rows
            carry nothing, in their order; `LoadSharing()` where loop forces have limits or weights.
        distance_limits: `DistanceLimits` between geoms of the model, viable as those of joints.
        parts: further parts, yours among them; see `control/tick/part.py`.
        actuator_limits: `ActuatorLimits` of the rate of forces, torque-speed lines and power; none
            unless given.
        tunable: what may change between ticks, as the input `tuning`: "gains", "weights" of the
            tasks, "friction", "forces" (limits) and "normals" of the contacts, "limits" of joints,
            actuators and distances, "prices"; see `tuning.py`.
        stabilisation: ω, 1/s: loops obey `A a + c + 2 ω A v + ω² phi = 0`.
        contact_damping: 1/s: active contacts obey `J_c a + c_c + damping J_c v = 0`.
        rank_tol: relative size below which a constraint direction is dropped.
        tolerance: bound of each residual for a solution to be accepted.
        fallback: safe output: "safe", the last u while it is young, then each actuator holds (see
            `control/safe_output`); "hold" the last u; "zero" actuator force within limits.
        fallback_law: a Function (q, v, ref, mask) → (u) in place of `fallback`.
        period: sample time, s.
        solver: "daqp", or "qrqp", for the Function in Python; exported C has a solver of its own.
            Quadratic cones have one method in both.
        name: a C identifier.

    Raises:
        ProblemError: tasks, contacts, limits or options that contradict themselves; a servo whose
            loop is unstable, with an inertia that is wrong by 30 %.
        UnknownNameError: a frame or joint that the model does not have.
        SolverError: the solver is not available.
        UnsupportedFeatureError: the model has an actuator, or a passive force, without equations.
    """

    def _summary(self) -> dict[str, object]:
        return {
            "name": self.name,
            "system": self.system.name,
            "tasks": [task.name for task in self.tasks],
            "contacts": self.contact_names,
            "rows": len(self.row_names),
            "period": self.period,
        }

    def __post_init__(self) -> None:
        require_fields(self)
        super().__post_init__()
        if not _WHEN_NEEDED.get():
            _ = self.function  # built here, so that errors of the build are raised here

    @cached_property
    def stages(self) -> Stages:
        """The parts around the QP solver."""
        return make_stages(self)

    @cached_property
    def function(self) -> ca.Function:
        """The controller as one named Function."""
        warn_of_doubts(self)
        return controller_fun(self.name, self.stages.qp, self.solver)

    @property
    def force_weights(self) -> ForceWeights:
        """The weights r_p (nu,), r_w of actuator forces and internal forces in the cost."""
        return self.stages.scales.force_weights

    @property
    def row_names(self) -> tuple[str, ...]:
        """Name of each inequality of the QP."""
        return self.stages.row_names

    @property
    def z0(self) -> Array:
        """Initial state: nothing active, nothing measured, commanded or learned yet."""
        active = np.zeros(self.problems * len(self.row_names))
        memory = np.zeros(self.memory_size)
        return np.concatenate([active, self.stages.safe.z0, memory])

    @cached_property
    def controller(self) -> Controller:
        """The controller as data, for export, plant and report."""
        with logged_time(_log, "building the equations of '%s'", self.name):
            monitor = monitor_fun(self._solution, self._inspect)
            data = controller_data(self, self.stages, self.function, self.z0, monitor)
            return replace(
                data,
                secondary=secondary_rows(self, self._inspect, self.z0),
                monitor_stages=monitor_stages(self.stages.qp, self._inspect, self.stages.unknowns),
            )

    @cached_property
    def _inspect(self) -> ca.Function:
        return inspection_fun(self, self.stages.scales, len(self.row_names))

    @cached_property
    def _candidate(self) -> ca.Function:
        return candidate_fun(self.stages.qp, self.solver, self.stages.unknowns)

    @cached_property
    def _solution(self) -> ca.Function:
        return solution_fun(self.stages.qp, self.solver, self.stages.unknowns)

    @checked
    def nlp(self) -> InstantNLP:
        """Return the problem of one instant for `ca.nlpsol`, with torque limits and cones.

        `problem = ctl.nlp(); ca.nlpsol("instant", "ipopt", problem.nlp)` takes
        `p=problem.parameters(q=…, v=…, ref=…, mask=…)`, `lbg=problem.lbg`, `ubg=problem.ubg`.

        Raises:
            ProblemError: the controller has levels.
        """
        if self.levels:
            raise ProblemError(
                "a tick with levels solves several problems in sequence; expected a controller "
                "without levels"
            )
        return instant_nlp(self.stages.qp, self.z0, self._inspect)

    @checked
    def problem(
        self,
        q: ArrayLike,
        v: ArrayLike,
        ref: ArrayLike | None = None,
        **inputs: Unpack[TickInputs],
    ) -> CondensedQP:
        """Return the QP at a state as data.

        Args:
            q, v, ref, inputs: as in `solve`.

        Raises:
            ProblemError, UnknownNameError, ShapeError: as in `solve`.
        """
        given = call_inputs(self, self.z0, q, v, ref, inputs)
        matrices = {key: np.array(out) for key, out in self._inspected(given).items()}
        return CondensedQP.of(matrices, self.stages.about, self.stages.qp.cones)

    @checked
    def solve(
        self,
        q: ArrayLike,
        v: ArrayLike,
        ref: ArrayLike | None = None,
        **inputs: Unpack[TickInputs],
    ) -> InverseDynamicsSolution:
        """Return the controller's output at a state, with the solution of its QP.

        Args:
            q: (nq,) configuration.
            v: (nv,) velocity.
            ref: (nref,) reference; default: rest at q.
            inputs: mask, z, act, tuning, f_measured, p: see `TickInputs`.

        Raises:
            ProblemError: an input that the controller does not have.
            UnknownNameError: no such input, or entry of `tuning`.
            ShapeError: a wrong shape. NaN and infinity do not raise: they give status 3.
        """
        given = call_inputs(self, self.z0, q, v, ref, inputs)
        found = self._solution(**given)
        inspected = self._inspected(given, x=found.pop("x"))
        outputs = {key: np.array(out).ravel() for key, out in found.items()}
        state = {key: np.array(out) for key, out in inspected.items()}
        return solution_of(self, self.stages, outputs, state)

    def _inspected(self, given: dict[str, Array], **at: ca.DM) -> dict[str, ca.DM]:
        """Return the quantities of the QP; they read z where it remembers something for them."""
        read = {name: x for name, x in given.items() if name in self._inspect.name_in()}
        found: dict[str, ca.DM] = self._inspect(**read, **at)
        return found

    @checked
    def explain(
        self,
        q: ArrayLike,
        v: ArrayLike,
        ref: ArrayLike | None = None,
        *,
        exactly: Sequence[str] = (),
        **inputs: Unpack[TickInputs],
    ) -> Explanation:
        """Return which limits exclude each other at a state, or what each costs the tasks.

        Args:
            q, v, ref, inputs: as in `solve`.
            exactly: tasks that count as limits: they have to be met without error.

        Raises:
            UnknownNameError: no such task, or no such entry of `tuning`.
            ProblemError, ShapeError: as in `solve`.
        """
        for name in exactly:
            require_name("task", name, [task.name for task in self.tasks])
        solution = self.solve(q, v, ref, **inputs)
        given = call_inputs(self, self.z0, q, v, ref, inputs)
        values = self._inspected(given, x=self._candidate(**given)["x"])
        y, tasks = np.array(values["y"]).ravel(), task_shares(self.tasks, self.system, values)
        rows = Viability.of(self).rows
        lacks = lacking(rows, values)
        slacks = len(soft_rows(self.stages.about, self.soft))
        found = explanation(solution, y, tasks, self.solver, exactly, self.levels, lacks, slacks)
        misses = missed_by(self, values) if solution.status <= Status.SUBOPTIMAL else {}
        bad = bad_inputs(self, self.controller.inputs, given)
        return replace(found, missed=misses, bad=bad)


CALLER = 7
"""Frames from `warn_of_doubts` to the line that builds an `InverseDynamicsQP`."""


_WHEN_NEEDED: ContextVar[bool] = ContextVar("when_needed", default=False)


@contextmanager
def built_when_needed() -> Iterator[None]:
    """Make controllers whose equations, and the errors of these, come with their first use.

    For those that are made again for a plant, see `fitted_to_plant`.
    """
    token = _WHEN_NEEDED.set(True)
    try:
        yield
    finally:
        _WHEN_NEEDED.reset(token)


def warn_of_doubts(setup: Setup) -> None:
    """Warn of what is built all the same."""
    doubts = [doubt for each in setup.bound for doubt in each.doubts]
    for doubt in (*doubts, doubt_of_base(setup)):
        if doubt:
            warnings.warn(doubt, stacklevel=CALLER)
