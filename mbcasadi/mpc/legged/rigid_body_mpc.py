"""MPC of a legged robot as one rigid body: contact forces of all feet over a horizon.

    min  Σ_{k=1}^N ½ |x_k - r_k|²_Q + Σ_{k<N} ½ ρ |f_k|²
    s.t. x_{k+1} = A x_k + S (G_k f_k + γ)                       (see `rigid_body`)
         |f_x| <= μ f_z,  |f_y| <= μ f_z,  f_min <= f_z <= f_max   of feet on the ground

The ground is level. A foot off the ground has no columns in G_k, so its force is zero.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.safe_output.mechanism_hold import hold_of_controls
from mbcasadi.control.safe_output.safe_output import SafeOutput
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import LeastDistanceStages, Signal
from mbcasadi.description.status import Status
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.legged.rigid_body import (
    NX,
    ROWS,
    WRENCH,
    Array,
    SingleRigidBody,
    foot_rows,
    geometry,
    interval,
)
from mbcasadi.mpc.legged.rigid_body_controller import SingleRigidBodyMPC
from mbcasadi.mpc.lq.horizon import Candidate, End, Horizon, Phase
from mbcasadi.mpc.lq.interval import BoundedValues, recursion
from mbcasadi.mpc.lq.rows import HorizonRows, StageRows
from mbcasadi.mpc.lq.tick import (
    flags_of,
    outputs_of,
    solver_results,
    stage_function,
    stagewise_controller,
)
from mbcasadi.mpc.ocp.constraints import row_set
from mbcasadi.qp.input_guard import active_signs, is_bounded
from mbcasadi.qp.kkt_residuals import judge
from mbcasadi.qp.plugins import require_solver
from mbcasadi.qp.solver import CLAIMED, candidate_fun, controller_fun
from mbcasadi.shapes import require_identifier, require_positive, require_whole, weight
from mbcasadi.system.coordinates import unitless_signal

STATES = ("roll", "pitch", "yaw", "px", "py", "pz", "wx", "wy", "wz", "vx", "vy", "vz")
STATE_UNITS = ("rad",) * 3 + ("m",) * 3 + ("rad/s",) * 3 + ("m/s",) * 3
SAFE_OUTPUT = (
    "the weight, shared by the feet on the ground; after bad input the last forces while they are "
    "young, then the weight, shared by all feet"
)
SIDES = ("fx-", "fy-", "fx+", "fy+", "fz")

LONGEST_ARM = 1e3
"""m; feet farther than this from the centre of mass count as bad input: beside their moments the
weight of forces would be lost in rounding."""


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
    problem = _Problem(body, horizon, cost, rho, tolerance, float(period))
    stages = problem.stages()
    controller = stagewise_controller(
        controller_fun(name, stages, solver),
        problem.signals(),
        problem.forces,
        problem.safe,
        np.append(np.zeros(stages.m), problem.safe.z0),
        {
            "law": "MPC of a single rigid body, condensed at run time",
            "horizon": f"{horizon} samples of {period:g} s",
            "safe output": SAFE_OUTPUT,
        },
        stages,
    )
    plan = problem.prediction(candidate_fun(stages, solver))
    controller = replace(controller, prediction=plan, prediction_rows=STATES)
    slots = tuple(Slot(f"x{k + 1}", STATES, STATE_UNITS) for k in range(horizon))
    return SingleRigidBodyMPC(controller, slots, body, horizon, cost, rho)


@dataclass(frozen=True)
class _Inputs:
    """The inputs, zero where any of them is bad: x0, the data of all intervals, and the bounds."""

    x0: ca.MX
    columns: list[tuple[ca.MX, ...]]
    end: End
    on: ca.MX
    bounds: tuple[ca.MX, ca.MX]
    valid: ca.MX


@dataclass(frozen=True)
class _Problem:
    """The problem of both stages, its numbers as in `single_rigid_body_mpc`."""

    body: SingleRigidBody
    N: int
    Q: Array
    rho: float
    tolerance: float
    period: float

    @cached_property
    def horizon(self) -> Horizon:
        """Equal intervals with the pyramids of all feet."""
        body, nf = self.body, 3 * self.body.feet
        of_one, of_end = row_set(foot_rows(body)[1], None), row_set(np.empty((0, 2)), None)
        labels = tuple(f"foot{i}.{side}" for i in range(body.feet) for side in SIDES)
        rows = HorizonRows(
            nf * self.N, (StageRows(self.N, of_one, labels), StageRows(1, of_end, ()))
        )
        bounded = BoundedValues(controls=False, states=(), rows=of_one)
        functions = recursion(
            lambda kind: interval(body, self.Q, self.rho, self.period, kind), bounded, None
        )
        return Horizon(NX, (Phase(self.N, nf, bounded, functions),), rows)

    @cached_property
    def safe(self) -> SafeOutput:
        """The output after bad input: the last forces, then the weight shared by all feet."""
        body, side = self.body, self.body.friction * self.body.f_max
        limits = np.tile([[-side, side], [-side, side], [0.0, body.f_max]], (body.feet, 1))
        start = np.tile(body.standing_force, body.feet) / body.feet
        return hold_of_controls(limits, self.period, start).safe

    def stages(self) -> LeastDistanceStages:
        """Return both Functions."""
        return LeastDistanceStages(self._build(), self._finish())

    def _symbols(self) -> dict[str, ca.MX]:
        return {
            signal.name: ca.MX.sym(signal.name, len(signal.components)) for signal in self.signals()
        }

    def _inputs(self, symbols: dict[str, ca.MX]) -> _Inputs:
        body, N = self.body, self.N
        given = [symbols[key] for key in ("x0", "feet", "ref", "mask")]
        arms = symbols["feet"] - ca.repmat(symbols["x0"][3:6], body.feet, 1)
        near = ca.sum1(ca.fabs(arms)) <= LONGEST_ARM
        valid = ca.logic_and(is_bounded(ca.vertcat(*given)), near)
        finite = ca.if_else(valid, ca.vertcat(*given), 0)
        ends = np.cumsum([0, *(part.numel() for part in given)]).tolist()
        x0, feet, ref, mask = ca.vertsplit(finite, ends)
        turn, G = geometry(body).call([x0, feet])
        on, r = mask > CLAIMED, ca.reshape(ref, NX, N)
        switches = ca.reshape(ca.repmat(on.T, 3 * WRENCH, 1), 3 * WRENCH * body.feet, N)
        starts = ca.horzcat(ca.MX.zeros(NX), r[:, : N - 1])
        columns = ca.repmat(turn, 1, N), ca.repmat(ca.vec(G), 1, N) * switches, starts
        Q = ca.sparsify(ca.DM(self.Q))
        cost = ca.horzcat(Q, -Q @ r[:, N - 1])
        low, high = self.horizon.rows.ends
        # Bounds of a foot off the ground admit zero.
        lifted = ca.kron(1 - on, ca.DM([*np.zeros(ROWS - 1), body.f_min]))
        bounds = low - lifted, ca.MX(high)
        return _Inputs(x0, [columns], End(cost, ca.MX(0, NX + 1)), on, bounds, valid)

    def _build(self) -> ca.Function:
        symbols, horizon = self._symbols(), self.horizon
        inputs, rows = self._inputs(symbols), self.horizon.rows
        columns, end = inputs.columns, inputs.end
        gains = horizon.gains(end.cost, columns)
        still = horizon.motion(inputs.x0, ca.MX.zeros(rows.nw), columns, gains)
        at_0 = rows.rows(horizon.values(still, columns, end.rows))
        lower, upper = rows.limits(at_0, inputs.bounds)
        outputs = {
            "A_qp": horizon.matrix(columns, gains, end.rows),
            "lba": lower,
            "uba": upper,
            "active0": active_signs(symbols["z"][: rows.m, 0]),
            "carry": ca.vec(gains[0]),
        }
        return stage_function("build", symbols, outputs)

    def prediction(self, candidate: ca.Function) -> ca.Function:
        """Return (x0, feet, ref, mask, z) → (x, u): the plan, from a Function that solves the QP.

        x (12, N + 1) begins with the measured state, u (3 feet, N) with the forces of the output
        where the solution is accepted.
        """
        symbols = self._symbols()
        inputs = self._inputs(symbols)
        gains = self.horizon.gains(inputs.end.cost, inputs.columns)
        w = candidate(**symbols)["x"]
        motion = self.horizon.motion(inputs.x0, w, inputs.columns, gains)
        return stage_function("prediction", symbols, {"x": motion.X, "u": motion.U[0]})

    def _finish(self) -> ca.Function:
        symbols, horizon, rows = self._symbols(), self.horizon, self.horizon.rows
        inputs, size = self._inputs(symbols), horizon.phases[0].functions.riccati.numel_out(1)
        qp = solver_results(ca.MX, rows.nw, rows.m, size * self.N)
        columns, gains = inputs.columns, [ca.reshape(qp["carry"], size, self.N)]
        motion = horizon.motion(inputs.x0, qp["x"], columns, gains)
        values = horizon.values(motion, columns, inputs.end.rows)
        candidate = Candidate(motion, values, ca.MX(0, 1), qp["lam_a"])
        residual, _ = horizon.residuals(
            candidate, columns, inputs.end, inputs.bounds, self.body.weight
        )
        status = judge(residual, flag=qp["flag"], valid=inputs.valid, tolerance=self.tolerance)
        solved = status <= Status.SUBOPTIMAL
        u = ca.if_else(solved, motion.U[0][:, 0], self._standing_forces(inputs.on))
        standing = ca.MX(ca.DM(self.safe.start))
        before = symbols["z"][rows.m :, 0]
        free, u, held = self.safe.step(before, standing, ca.MX(0), inputs.valid, u)
        active = ca.if_else(solved, active_signs(qp["active"]), 0)
        outputs = outputs_of(
            u,
            ca.vertcat(active[rows.later, 0], held),
            status,
            flags_of((free, u), solved, candidate.e, self.tolerance),
            (residual, inputs.valid),
        )
        return stage_function("finish", symbols | qp, outputs)

    def _standing_forces(self, on: ca.MX) -> ca.MX:
        """Return the weight, shared by the feet on the ground: the safe output."""
        now = on[: self.body.feet, 0]
        return ca.kron(now, ca.DM(self.body.standing_force)) / ca.fmax(ca.sum1(now), 1)

    @property
    def forces(self) -> Signal:
        """Names and units of u."""
        axes = self._axes
        return Signal("u", axes, ("N",) * len(axes))

    @property
    def _axes(self) -> tuple[str, ...]:
        return tuple(f"foot{i}.{axis}" for i in range(self.body.feet) for axis in "xyz")

    def signals(self) -> tuple[Signal, ...]:
        """Return names and units of the inputs."""
        samples, axes = range(self.N), self._axes
        z = [f"active.{name}" for name in self.horizon.rows.names]
        z += [f"safe.{name}" for name in self.safe.components]
        mask = tuple(f"foot{i}[{k}]" for k in samples for i in range(self.body.feet))
        ref = tuple(f"{name}[{k + 1}]" for k in samples for name in STATES)
        return (
            Signal("x0", STATES, STATE_UNITS),
            Signal("feet", axes, ("m",) * len(axes)),
            Signal("ref", ref, STATE_UNITS * self.N),
            unitless_signal("mask", mask),
            unitless_signal("z", tuple(z)),
        )
