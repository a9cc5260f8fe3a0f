"""MPC of a legged robot as one rigid body: contact forces of all feet over a horizon.

    min  Σ_{k=1}^N ½ |x_k - r_k|²_Q + Σ_{k<N} ½ ρ |f_k|²
    s.t. x_{k+1} = A x_k + S (G_k f_k + γ)                       (see `rigid_body`)
         |f_x| <= μ f_z,  |f_y| <= μ f_z,  f_min <= f_z <= f_max   of feet on the ground

The ground is level. A foot off the ground has no columns in G_k, so its force is zero.
"""

from dataclasses import dataclass, replace
from typing import final

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.control_law import ControlLaw
from mbcasadi.control.law_interface.control_solution import solve_by_name
from mbcasadi.control.tasks.reference import Slices, fill_reference, merged
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import Controller, LeastDistanceStages, Signal
from mbcasadi.description.status import QP_STATUS, Status
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.mpc.legged.rigid_body import NX, Array, SingleRigidBody, interval_functions
from mbcasadi.mpc.legged.rigid_body_stages import RigidBodyStages
from mbcasadi.qp.kkt_residuals import QP_RESIDUALS
from mbcasadi.qp.solver import candidate_fun, controller_fun, require_solver
from mbcasadi.shapes import (
    column,
    real_array,
    require_identifier,
    require_positive,
    require_shape,
    require_whole,
    weight,
)
from mbcasadi.short_text import summarised

STATES = ("roll", "pitch", "yaw", "px", "py", "pz", "wx", "wy", "wz", "vx", "vy", "vz")
STATE_UNITS = ("rad",) * 3 + ("m",) * 3 + ("rad/s",) * 3 + ("m/s",) * 3
SAFE_OUTPUT = (
    "the weight, shared by the feet on the ground; after bad input the last forces while they are "
    "young, then the weight, shared by all feet"
)
SIDES = ("fx-", "fx+", "fy-", "fy+", "fz")


@summarised
@dataclass(frozen=True)
class RigidBodyPlan:
    """The controller's output, with its plan.

    Attributes:
        u: (3 feet,) forces of the ground on the feet now, N, world axes; from status 2 on the safe
            output.
        z_next: state of the next tick.
        status, status_text: of the controller, as number and as text.
        residual: (3,) see `residual` of the controller.
        states: (N + 1, 12), from the measured one on.
        planned_forces: (N, feet, 3) forces, N.
    """

    u: Array
    z_next: Array
    status: int
    status_text: str
    residual: Array
    states: Array
    planned_forces: Array

    def _summary(self) -> dict[str, object]:
        return {"status": self.status_text, "u": self.u, "residual": self.residual}

    @property
    def forces(self) -> Array:
        """(feet, 3) u, foot by foot."""
        return self.u.reshape(-1, 3)

    @property
    def solved(self) -> bool:
        """Whether the status is 0."""
        return self.status == Status.SOLVED


@final
@summarised
@dataclass(frozen=True)
class SingleRigidBodyMPC(ControlLaw):
    """The controller (x0, feet, ref, mask, z) → (u, z_next, status, flags, residual).

    Attributes:
        controller: for `export_c`.
        slots: the slices of the reference, `x1` … `xN`, a state for each sample.
        body, horizon, Q, rho: the problem.
    """

    body: SingleRigidBody
    horizon: int
    Q: Array
    rho: float

    def _summary(self) -> dict[str, object]:
        return {
            "name": self.controller.name,
            "feet": self.body.feet,
            "horizon": self.horizon,
            "period": self.period,
        }

    @property
    def nominal_reference(self) -> None:
        """None: the reference says where the body shall be."""
        return None

    @checked
    def reference(self, values: Slices | None = None, /, **slices: ArrayLike) -> Array:
        """Return the reference of all samples: `reference(x=...)`, zero elsewhere.

        Args:
            values: by name, `{"x1": state}`; "x" has (N, 12) rows, or (12,) for all samples.
            slices: the same as keywords.

        Raises:
            UnknownNameError: no such slice; the message lists those there are.
            ShapeError: a slice of a wrong size.
        """
        given = dict(merged(values, slices))
        if "x" in given:
            rows = real_array("reference x", given.pop("x"))
            rows = np.tile(rows, (self.horizon, 1)) if rows.ndim < 2 else rows
            require_shape("reference x", rows, (self.horizon, NX), "a state for each sample")
            given = {f"x{k + 1}": row for k, row in enumerate(rows)} | given
        return fill_reference(self.slots, given)

    @checked
    def reference_at(self, q: ArrayLike, values: Slices | None = None) -> Array:
        """Return the reference that stays at the place and yaw of a state, level and at rest.

        Args:
            q: (12,) state (rpy, p, ω, v) of the body, which has no other pose; (6,) suffices.
            values: slices with another value, by name.

        Raises:
            UnknownNameError, ShapeError: as in `reference`.
        """
        pose = real_array("q", q).ravel()
        if pose.size not in {NX, NX // 2} or not np.all(np.isfinite(pose)):
            raise ShapeError(
                f"q has {pose.size} entries; expected the body's (roll, pitch, yaw, x, y, z), or "
                f"its state ({NX},), finite"
            )
        rest = np.zeros(NX)
        rest[2:6] = pose[2:6]
        return self.reference({"x": rest} | dict(values or {}))

    @checked
    def solve(
        self,
        x0: ArrayLike,
        feet: ArrayLike,
        ref: ArrayLike | None = None,
        *,
        mask: ArrayLike | None = None,
        z: ArrayLike | None = None,
    ) -> RigidBodyPlan:
        """Return the controller's output, with its plan.

        Args:
            x0: (12,) state.
            feet: (feet, 3) their places in the world, m.
            ref: (N, 12), or (12 N,), a state for each sample 1..N; by default `reference_at(x0)`.
            mask: (N, feet), which foot is on the ground in which interval; all by default.
            z: state of the controller; nothing active by default.

        Raises:
            ShapeError: a wrong shape, such as a schedule longer than the horizon. NaN does not
                raise: it gives status 3.
        """
        N, nf = self.horizon, self.body.feet
        state = column("x0", x0, NX, finite=False)
        if ref is None:
            ref = self.reference_at(state) if np.all(np.isfinite(state)) else np.zeros((N, NX))
        rows = real_array("ref", ref)
        rows = rows.reshape(N, NX) if rows.shape == (N * NX,) else rows
        if mask is not None:
            mask = _table("mask", mask, (N, nf), "a row for each interval")
        output = solve_by_name(
            self.controller,
            {
                "x0": state,
                "feet": _table("feet", feet, (nf, 3), "a place for each foot"),
                "ref": _table("ref", rows, (N, NX), "a state for each sample"),
                "mask": mask,
                "z": z,
            },
        )
        assert output.planned_states is not None
        assert output.planned_controls is not None
        return RigidBodyPlan(
            u=output.u,
            z_next=output.z_next,
            status=output.status,
            status_text=QP_STATUS.words[output.status],
            residual=output.residual,
            states=output.planned_states,
            planned_forces=output.planned_controls.reshape(N, nf, 3),
        )


@checked
def single_rigid_body_mpc(
    body: SingleRigidBody,
    horizon: int,
    Q: ArrayLike,
    rho: float,
    *,
    period: float = 0.03,
    tolerance: float = 1e-6,
    solver: str = "daqp",
    name: str = "single_rigid_body_mpc",
) -> SingleRigidBodyMPC:
    """Return the controller of the ground's forces on the feet, in world axes.

    Its inputs: x0 (rpy, p, ω, v); ref, a state for each sample 1..N; feet, their places in the
    world, m; mask, for each interval whether each foot is on the ground. A tick's state z is the
    active set, shifted by one sample.

    Args:
        body: the robot.
        horizon: N.
        Q: (12, 12) or (12,), weight of the state.
        rho: weight of forces, 1/N².
        period: sample time, s.
        tolerance: bound of each residual for a solution to be accepted.
        solver: "daqp", or "qrqp", for the Function in Python; the C has its own.
        name: a C identifier.

    Raises:
        ProblemError: an invalid number.
        ShapeError: Q has a wrong shape, or holds NaN.
        SolverError: the solver is not available.
    """
    require_solver(solver)
    require_positive(period=period, rho=rho, tolerance=tolerance, mass=body.mass)
    require_positive(friction=body.friction, f_max=body.f_max)
    require_whole(1, horizon=horizon)
    if not 0 <= body.f_min <= body.f_max:
        raise ProblemError(
            f"f_min = {body.f_min}, f_max = {body.f_max}; expected 0 <= f_min <= f_max"
        )
    require_identifier("name", name)
    weight("inertia", body.inertia, 3, definite=True)
    cost = weight("Q", Q, NX)
    problem = RigidBodyStages(
        body, horizon, cost, interval_functions(body, cost, rho, period), tolerance, float(period)
    )
    stages = problem.stages()
    plan = problem.prediction(candidate_fun(stages, solver))
    without_plan = _controller_data(controller_fun(name, stages, solver), stages, problem, period)
    controller = replace(without_plan, prediction=plan, prediction_rows=STATES)
    slots = tuple(Slot(f"x{k + 1}", STATES, STATE_UNITS) for k in range(horizon))
    return SingleRigidBodyMPC(controller, slots, body, horizon, cost, rho)


def _table(name: str, value: ArrayLike, shape: tuple[int, int], meaning: str) -> Array:
    array = real_array(name, value)
    require_shape(name, array, shape, meaning)
    return array.ravel()


def _controller_data(
    function: ca.Function, stages: LeastDistanceStages, problem: RigidBodyStages, period: float
) -> Controller:
    feet, samples = range(problem.body.feet), range(problem.horizon)
    axes = tuple(f"foot{i}.{axis}" for i in feet for axis in "xyz")
    z = tuple(f"active.foot{i}.{side}[{k}]" for k in samples for i in feet for side in SIDES)
    rows, z = len(z), (*z, *(f"safe.{name}" for name in problem.safe.components))
    ref = tuple(f"{name}[{k + 1}]" for k in samples for name in STATES)
    mask = tuple(f"foot{i}[{k}]" for k in samples for i in feet)
    no_units = ("",) * len(z)
    low, high = problem.force_limits()
    return Controller(
        name=function.name(),
        function=function,
        inputs=(
            Signal("x0", STATES, STATE_UNITS),
            Signal("feet", axes, ("m",) * len(axes)),
            Signal("ref", ref, STATE_UNITS * problem.horizon),
            Signal("mask", mask, ("",) * len(mask)),
            Signal("z", z, no_units),
        ),
        outputs=(
            Signal("u", axes, ("N",) * len(axes)),
            Signal("z_next", z, no_units),
            Signal("status", ("status",), ("",)),
            Signal("flags", ("flags",), ("",)),
            Signal("residual", QP_RESIDUALS, ("",) * len(QP_RESIDUALS)),
        ),
        u_min=low,
        u_max=high,
        z0=np.append(np.zeros(rows), problem.safe.z0),
        period=period,
        stages=stages,
        emergency=problem.safe.emergency(rows),
        notes={
            "law": "MPC of a single rigid body, condensed at run time",
            "horizon": f"{problem.horizon} samples of {period:g} s",
            "unknowns, rows": f"{stages.n}, {stages.m}",
            "status": QP_STATUS.summary(SAFE_OUTPUT),
        },
    )
