"""MPC of a legged robot as one rigid body: contact forces of all feet over a horizon.

    min  Σ_{k=1}^N ½ |x_k - r_k|²_Q + Σ_{k<N} ½ ρ |f_k|²
    s.t. x_{k+1} = A x_k + S (G_k f_k + γ)                       (see `rigid_body`)
         |f_x| <= μ f_z,  |f_y| <= μ f_z,  f_min <= f_z <= f_max   of feet on the ground

The ground is level. A foot off the ground has no columns in G_k, so its force is zero.
"""

from dataclasses import replace

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import Controller, LeastDistanceStages, Signal
from mbcasadi.description.status import QP_STATUS
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.legged.rigid_body import NX, SingleRigidBody, interval_functions
from mbcasadi.mpc.legged.rigid_body_controller import SingleRigidBodyMPC
from mbcasadi.mpc.legged.rigid_body_stages import RigidBodyStages
from mbcasadi.qp.kkt_residuals import QP_RESIDUALS
from mbcasadi.qp.solver import candidate_fun, controller_fun, require_solver
from mbcasadi.shapes import (
    require_identifier,
    require_positive,
    require_whole,
    weight,
)

STATES = ("roll", "pitch", "yaw", "px", "py", "pz", "wx", "wy", "wz", "vx", "vy", "vz")
STATE_UNITS = ("rad",) * 3 + ("m",) * 3 + ("rad/s",) * 3 + ("m/s",) * 3
SAFE_OUTPUT = (
    "the weight, shared by the feet on the ground; after bad input the last forces while they are "
    "young, then the weight, shared by all feet"
)
SIDES = ("fx-", "fx+", "fy-", "fy+", "fz")


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
