"""A quadrotor and an arm among spheres beside acados' real-time iteration of the same problem.

Both go back and forth between two poses, with noise in their velocities. Steps are semi-implicit
and the QP keeps its states: of our forms that is the fastest one for both. acados gets the same
dynamics and residuals in C, our formulas for the derivatives of the dynamics, and the rows of the
spheres, as `con_h_expr`; its partial condensing makes `BLOCKS` blocks, the fastest of 5, 10 and 30.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import mujoco
import numpy as np
from numpy.typing import NDArray

from bench import mpc_acados
from bench.robots import IIWA, robot_path
from bench.rows import row
from mbcasadi import models
from mbcasadi.codegen import CProject, export_c
from mbcasadi.errors import SolverError
from mbcasadi.mpc import (
    Bounded,
    Cost,
    OptimalControlProblem,
    SemiImplicitStep,
    initial_guess,
    optimal_control_problem,
    real_time_iteration,
    stage_symbols,
)
from mbcasadi.mpc.rti.iteration import RealTimeIteration
from mbcasadi.system import read_mjcf

Array = NDArray[np.float64]

INTERVALS, BLOCKS = 30, 10
HELD = 60  # ticks for which a goal stays
EVERY = 4  # of the ticks acados solves
KIND = "SQP_RTI"
NAME = mpc_acados.KINDS[KIND]
RISE = (2.0, 1.0, 0.5)  # m, between the poses of the quadrotor
TORQUES = (176.0, 176.0, 110.0, 110.0, 110.0, 40.0, 40.0)  # N m, of the iiwa's motors
ARMATURE = 0.1  # kg m², of its joints
CLEARANCE = 0.18  # m, from the middles of the spheres to the points that keep away
SPHERES = ((0.45, 0.0, 0.45), (0.45, 0.3, 0.7), (-0.1, 0.55, 0.6), (0.2, 0.45, 0.95))  # m
POINTS = ("link4", "link6", "link7")  # bodies whose origins keep away
REACHES = ((0.6, 0.6, 0.0, -1.2, 0.0, 0.9, 0.0), (-0.6, 0.9, 0.2, -0.9, 0.3, 0.7, 0.4))  # rad
SEED = 0


@dataclass(frozen=True)
class Shuttle:
    """A problem, the two poses between which it goes, and what disturbs it.

    Attributes:
        name: what is printed.
        ocp: the problem.
        poses: (nq,) of each end.
        u: (nu,) control at both.
        noise: of the velocities at each tick, m/s and rad/s.
    """

    name: str
    ocp: OptimalControlProblem
    poses: tuple[Array, Array]
    u: Array
    noise: float

    def parameters(self, tick: int) -> Array:
        """Return p (N + 1, np) of a tick."""
        pose = self.poses[(tick // HELD + 1) % 2]
        return self.ocp.parameters(setpoint_q=pose, setpoint_u=self.u)

    def law(self) -> RealTimeIteration:
        """Return the controller, which begins at rest in the first pose."""
        N, nv = self.ocp.horizon, self.ocp.state.numel_in("v")
        x = np.tile(np.concatenate([self.poses[0], np.zeros(nv)]), (N + 1, 1))
        guess = initial_guess(self.ocp, x, np.tile(self.u, (N, 1)))
        return real_time_iteration(self.ocp, guess, solver="stagewise")


def quadrotor() -> Shuttle:
    """Return the quadrotor of the package: 20 ms, thrusts within their range."""
    system = read_mjcf(models.path("quadrotor"))
    assert system.tree is not None
    hover = np.array(system.tree.keyframes["hover"], dtype=float)
    weights = [40.0] * 3 + [10.0] * 3 + [4.0] * 3 + [1.0] * 3
    end = [80.0] * 3 + [20.0] * 3 + [20.0] * 3 + [2.0] * 3
    cost = Cost(Q=weights, R=[0.5] * 4, Q_end=end)
    ocp = optimal_control_problem(
        system, INTERVALS, 0.02, [cost], step=SemiImplicitStep(), name="quadrotor"
    )
    away = hover.copy()
    away[:3] += RISE
    data = mujoco.MjModel.from_xml_path(str(models.path("quadrotor")))
    return Shuttle("quadrotor", ocp, (hover, away), data.key_ctrl[0].copy(), 0.05)


def arm(path: Path) -> Shuttle:
    """Return the iiwa with motors: 50 ms, torques within their range, three points off spheres."""
    spec = mujoco.MjSpec.from_file(str(path))
    for actuator, most in zip(spec.actuators, TORQUES, strict=True):
        actuator.set_to_motor()
        actuator.ctrlrange, actuator.ctrllimited = [-most, most], True
    for joint in spec.joints:
        joint.armature, joint.damping = ARMATURE, np.zeros(3)
    system = read_mjcf(spec)
    symbols = stage_symbols(system)
    places = {name: system.frame(name, kind="body").pose(symbols.q)[0] for name in POINTS}
    rows = [
        Bounded(ca.sumsqr(place - ca.DM(middle)), lower=CLEARANCE**2, name=f"{name}{i}")
        for name, place in places.items()
        for i, middle in enumerate(SPHERES)
    ]
    cost = Cost(Q=[100.0] * 7 + [1.0] * 7, R=[1e-4] * 7, Q_end=[100.0] * 7 + [10.0] * 7)
    parts: list[Any] = [cost, *rows]
    ocp = optimal_control_problem(
        system, INTERVALS, 0.05, parts, symbols=symbols, step=SemiImplicitStep(), name="arm"
    )
    ends = np.array(REACHES)
    return Shuttle("iiwa among four spheres", ocp, (ends[0], ends[1]), np.zeros(7), 0.02)


def shuttles() -> list[Shuttle]:
    """Return those whose models are present."""
    path = robot_path(IIWA)
    return [quadrotor(), *([arm(path)] if path else [])]


def closed_loop(
    shuttle: Shuttle, law: RealTimeIteration, loaded: ca.Function, ticks: int
) -> tuple[dict[str, Array], Array, Array]:
    """Return the inputs of every tick, its controls and its status."""
    rng, ocp = np.random.default_rng(SEED), shuttle.ocp
    nq, nv = (ocp.state.numel_in(key) for key in ("q", "v"))
    x, z = np.concatenate([shuttle.poses[0], np.zeros(nv)]), law.controller.z0
    rows, controls, status = list[tuple[Array, ...]](), list[Array](), list[float]()
    for tick in range(ticks):
        p = shuttle.parameters(tick)
        rows.append((x[:nq], x[nq:], p.ravel(), z))
        u, z, flag, *_ = (np.array(value).ravel() for value in loaded(*rows[-1]))
        controls.append(u)
        status.append(float(flag[0]))
        x = np.array(ocp.dynamics(x, u, p[0])).ravel()
        x[nq:] += shuttle.noise * rng.standard_normal(nv)
    columns = zip(*rows, strict=True)
    inputs = {key: np.array(v) for key, v in zip(("q", "v", "ref", "z"), columns, strict=True)}
    return inputs, np.array(controls), np.array(status)


def add_rows(
    results: dict[str, Any],
    shuttle: Shuttle,
    tick_rows: Callable[[str, CProject, dict[str, Array], int], list[dict[str, Any]]],
    timing: tuple[tuple[str, ...], int, int],
) -> None:
    """Add the rows of a problem beside acados.

    Args:
        results: with "rows" and "checks".
        shuttle: the problem.
        tick_rows: (model, project, inputs, repeats) → rows of whole ticks and phases.
        timing: flags, ticks, repeats.
    """
    flags, ticks, repeats = timing
    model = f"{shuttle.name}, N = {shuttle.ocp.horizon}"
    with tempfile.TemporaryDirectory(prefix="mbcasadi-shuttle-") as folder:
        law = shuttle.law()
        project = export_c(law, Path(folder) / "c")
        inputs, u, status = closed_loop(shuttle, law, project.load(flags=flags), ticks)
        results["checks"][f"{model}: unsolved ticks"] = int(np.count_nonzero(status))
        results["rows"] += tick_rows(model, project, inputs, repeats)
        some = {key: values[::EVERY] for key, values in inputs.items()}
        before = project.time(some, repeats, flags=flags).seconds
        name, seconds, miss = beside(shuttle, law, some, u[::EVERY], repeats)
        after = project.time(some, repeats, flags=flags).seconds
    best = np.vstack([before.reshape(repeats, -1), after.reshape(repeats, -1)]).min(axis=0)
    solved = np.isfinite(seconds)
    results["checks"][f"{model}, acados: unsolved"] = int(np.count_nonzero(~solved))
    ours = float(np.median(best[solved] if solved.any() else best))
    theirs = float(np.median(seconds[solved])) if solved.any() else None
    results["rows"].append(row(model, "one iteration", ours, name, theirs) | {"miss": miss})


def beside(
    shuttle: Shuttle, law: RealTimeIteration, inputs: dict[str, Array], u: Array, repeats: int
) -> tuple[str, Array, float | None]:
    """Return acados' name, s of each tick, NaN where it failed, and the median miss of u.

    The miss is relative to the largest control.
    """
    nothing = np.full(len(u), np.nan)
    if not mpc_acados.available():
        return f"{NAME} ({mpc_acados.ABSENT})", nothing, None
    shape = (shuttle.ocp.horizon + 1, shuttle.ocp.np_)
    tasks = [
        (np.concatenate([q, v]), ref.reshape(shape), initial_guess(shuttle.ocp, *law.trajectory(z)))
        for q, v, ref, z in zip(*inputs.values(), strict=True)
    ]
    try:
        seconds, theirs = mpc_acados.solve_tasks(shuttle.ocp, KIND, tasks, BLOCKS, repeats)
    except SolverError as error:
        return f"{NAME} ({error})", nothing, None
    solved = np.isfinite(seconds)
    gaps = np.abs(theirs - u)[solved].max(axis=1) / np.abs(u).max()
    return NAME, seconds, float(np.median(gaps)) if solved.any() else None
