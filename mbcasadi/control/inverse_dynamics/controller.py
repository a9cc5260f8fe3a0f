"""Inverse dynamics within torque limits and friction cones, for any constrained mechanism."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.control.inverse_dynamics.description import controller_data
from mbcasadi.control.inverse_dynamics.inspection import inspection_fun, monitor_fun
from mbcasadi.control.inverse_dynamics.options import Array, Setup
from mbcasadi.control.inverse_dynamics.priorities.levels import levels_of
from mbcasadi.control.inverse_dynamics.problem import ForceWeights
from mbcasadi.control.inverse_dynamics.solution import CondensedQP, InverseDynamicsSolution
from mbcasadi.control.inverse_dynamics.tick import Stages, make_stages
from mbcasadi.description import Controller
from mbcasadi.description.status import QP_STATUS, Flag
from mbcasadi.qp.solver import candidate_fun, controller_fun
from mbcasadi.shapes import column, require_name


@dataclass(frozen=True, eq=False, repr=False)
class InverseDynamicsQP(Setup):
    """`min Σ |J a + c - a_des|²_W` over what motors, loops, passive joints and contacts allow.

    The law solves, at every tick and for any rank of its constraints,

        M a + h = f_passive + actuator force + Aᵀ lam + J_cᵀ f,   A a + c = 0,   J_c a + c_c = 0

    for the controls u, with actuator forces and controls within their limits and every contact
    force f inside an inner friction pyramid. Acceleration, multipliers and dependent rows are
    eliminated first (`condensed_dynamics.py`); the remaining QP has inequalities only, and its
    solution is checked on the original equations before it is used (`residuals.py`).

    Its Function is `(q, v, [act], ref, [tuning], mask, z) → (u, z_next, status, flags, residual)`:

    - `ref`: the tasks' references; `reference` names its slices, `reference_at(q)` holds q at rest.
    - `tuning`: what `tunable` names, with the names and defaults of `tuning`.
    - `mask`: one entry for each contact, then one for each equality constraint, 1 for on. It
      switches rows of the same problem: sizes do not change.
    - `z`: the active set, and what the safe output remembers. Any content is accepted.
    - `status`: 0 solved and verified; 1 feasible, not optimal; 2 infeasible; 3 bad input (NaN,
      infinity); 4 failed check. From 2 on, u is the fallback.
    - `residual`: (5,) dynamics, constraint, primal, stationarity, complementarity, relative.
    - `levels`: one more output with `levels`: `|J a + c - a_des|_W` of each of them.

    u never leaves its limits, whatever the inputs are. `export_c` turns the law into C.

    Args:
        system: the mechanism.
        tasks: the desired motions, `PostureTask`, `FrameTask` or your own `Task`.
        contacts: points that push on the world, each with a friction cone: sites, bodies, or frames
            of `System.with_frame`.
        levels: names of tasks, level by level: `[["feet", "com"], ["trunk"], ["posture"]]`. Each
            level is met as well as those before it and the limits allow, none gives up anything
            for a later one; the regularisation is the last level. Tasks of one level are weighted
            against each other. None: all tasks are weighted against each other and against the
            regularisation. See `priorities/cascade.py`.
        level_damping: share of its usual strength below which a direction of a level is damped and
            left to later levels, step by step; see `priorities/level_factor.py`.
        torque_weight: weight of the actuator forces p (N or N m), relative and positive: the
            cost is `½ Σ r_i (p_i - p_ref,i)²` with `r_i = torque_weight · τ² / I_i`, where I_i is
            the inertia that actuator i sees and τ² the tasks' cost of a unit acceleration
            `aᵀ M a = 1`, both means over poses. It selects among forces that cause no motion, and
            biases the tasks by about this share.
        torque_reference: read `p_ref` from the slice "torque" of `ref`; else it is zero.
        internal_forces: "body": the load of several points on one body is distributed freely
            within their cones; "none": by the least squares of their forces.
        internal_force_weight: the same of these internal forces.
        force_weight: r_f of `½ r_f |f - f_ref|²` on all contact forces, zero for none.
        force_reference: read `f_ref` (n, t1, t2 of each contact) from the slice "force" of
            `ref`; else it is zero. It needs a `force_weight`.
        ctrl_limits, force_limits: (nu, 2) limits of u, and of the actuator forces, instead of
            the model's. Ranges of summed forces on joints and tendons always hold.
        joint_limits: `JointLimits` of positions, velocities and accelerations of joints; none
            unless given. They are viable: a joint can always stop before its stop.
        tunable: what may change between ticks, as the input `tuning`: "gains", "weights" of the
            tasks, "friction", "forces" (limits) and "normals" of the contacts; see `tuning.py`.
        stabilisation: ω, 1/s: loops obey `A a + c + 2 ω A v + ω² phi = 0`.
        contact_damping: 1/s: active contacts obey `J_c a + c_c + damping J_c v = 0`.
        rank_tol: relative size below which a constraint direction is dropped.
        tolerance: bound of each residual for a solution to be accepted.
        fallback: safe output: "safe", the last u while it is young, then each actuator holds (see
            `control/safe_output`); "hold" the last u; "zero" actuator force within limits.
        fallback_law: a Function (q, v, ref, mask) → (u) in place of `fallback`.
        period: sample time, s.
        solver: "daqp", or "qrqp", for the Function in Python; exported C has a solver of its own.
        name: a C identifier.

    Raises:
        ProblemError: tasks, contacts, limits or options that contradict themselves.
        UnknownNameError: a frame or joint that the model does not have.
        SolverError: the solver is not available.
        UnsupportedFeatureError: the model has an actuator, or a passive force, without equations.
    """

    def __post_init__(self) -> None:
        require_fields(self)
        super().__post_init__()
        _ = self.function  # built here, so that errors of the build are raised here

    @cached_property
    def stages(self) -> Stages:
        """The parts around the QP solver."""
        return make_stages(self)

    @cached_property
    def function(self) -> ca.Function:
        """The controller as one named Function."""
        return controller_fun(self.name, self.stages.qp, self.solver)

    @property
    def force_weights(self) -> ForceWeights:
        """The weights r_p (nu,), r_w of actuator forces and internal forces in the cost."""
        return self.stages.scales.force_weights(self)

    @property
    def row_names(self) -> tuple[str, ...]:
        """Name of each inequality of the QP."""
        return self.stages.row_names

    @property
    def z0(self) -> Array:
        """Initial state: nothing active, nothing measured yet."""
        return np.concatenate([np.zeros(self.problems * len(self.row_names)), self.stages.safe.z0])

    @cached_property
    def controller(self) -> Controller:
        """The controller as data, for export, plant and report."""
        monitor = monitor_fun(self._candidate, self._inspect)
        return controller_data(self, self.stages, self.function, self.z0, monitor)

    @cached_property
    def _inspect(self) -> ca.Function:
        return inspection_fun(self, self.stages.scales)

    @cached_property
    def _candidate(self) -> ca.Function:
        return candidate_fun(self.stages.qp, self.solver, self.stages.unknowns)

    @checked
    def problem(
        self,
        q: ArrayLike,
        v: ArrayLike,
        ref: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        act: ArrayLike | None = None,
        tuning: Mapping[str, float] | None = None,
    ) -> CondensedQP:
        """Return the QP at a state as data.

        Args:
            q, v, ref, mask, act, tuning: as in `solve`.

        Raises:
            ShapeError: a wrong shape.
        """
        inputs = self._inputs(q, v, ref, mask, act) | self._tuning_input(tuning)
        matrices = {key: np.array(out) for key, out in self._inspect(**inputs).items()}
        return CondensedQP.of(matrices, self.row_names)

    @checked
    def solve(
        self,
        q: ArrayLike,
        v: ArrayLike,
        ref: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        z: ArrayLike | None = None,
        act: ArrayLike | None = None,
        tuning: Mapping[str, float] | None = None,
    ) -> InverseDynamicsSolution:
        """Return the controller's output at a state, with the solution of its QP.

        Args:
            q: (nq,) configuration.
            v: (nv,) velocity.
            ref: (nref,) reference; default: rest at q.
            mask: one for each contact and equality constraint that is on; default: all on.
            z: (nz,) state; default: `z0`.
            act: (na,) activations, where the system has them; default: zero.
            tuning: entries of the input `tuning` by name; the others have their defaults.

        Raises:
            UnknownNameError: no such entry of `tuning`.
            ShapeError: a wrong shape. NaN and infinity do not raise: they give status 3.
        """
        inputs = self._inputs(q, v, ref, mask, act) | self._tuning_input(tuning)
        z = self.z0 if z is None else column("z", z, self.z0.size, finite=False)
        outputs = {key: np.array(out).ravel() for key, out in self.function(**inputs, z=z).items()}
        x = self._candidate(**inputs, z=z)["x"]
        state = {key: np.array(out) for key, out in self._inspect(**inputs, x=x).items()}
        code = int(outputs["status"][0])
        return InverseDynamicsSolution(
            u=outputs["u"],
            z_next=outputs["z_next"],
            status=code,
            status_text=QP_STATUS.words[code],
            flags=Flag(int(outputs["flags"][0])),
            residual=outputs["residual"],
            levels=self._level_errors(outputs),
            problem=CondensedQP.of(state, self.row_names),
            a=state["a"].ravel(),
            lam=state["lam"].ravel(),
            contact_forces=state["contact_force"].reshape(-1, 3),
            p=state["p"].ravel(),
            independent_rows=state["independent_rows"].ravel(),
            violations=state["violation"].ravel(),
        )

    def _level_errors(self, outputs: Mapping[str, Array]) -> dict[str, float]:
        """Return the error of each level by its name."""
        names = [level.name for level in levels_of(self)]
        return dict(zip(names, outputs["levels"].tolist(), strict=True)) if names else {}

    def _tuning_input(self, values: Mapping[str, float] | None) -> dict[str, Array]:
        """Return the input `tuning` by its name, where there is one."""
        entries = {parameter.name: parameter.default for parameter in self.tuning}
        for name, value in (values or {}).items():
            require_name("entry of tuning", name, list(entries))
            entries[name] = value
        return {"tuning": np.array([*entries.values()], dtype=float)} if entries else {}

    def _inputs(
        self,
        q: ArrayLike,
        v: ArrayLike,
        ref: ArrayLike | None,
        mask: ArrayLike | None,
        act: ArrayLike | None,
    ) -> dict[str, Array]:
        """Return the checked inputs by name, defaults filled in."""
        system = self.system
        q = column("q", q, system.nq, finite=False)
        if ref is None:
            ref = self.reference_at(q)
        mask = np.ones(len(self.mask_names)) if mask is None else mask
        inputs = {
            "q": q,
            "v": column("v", v, system.nv, finite=False),
            "ref": column("ref", ref, self.nref, finite=False),
            "mask": column("mask", mask, len(self.mask_names), finite=False),
        }
        if system.na:
            act = np.zeros(system.na) if act is None else act
            inputs["act"] = column("act", act, system.na, finite=False)
        return inputs
