"""A million ticks of loops with few encoders: truth, readings and filter in one chain of C.

An interpreter between ticks would take a hundred times as long as the filter.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import casadi as ca
import numpy as np
from estimation.drawn_mechanism import nees, truth_fun

import mbcasadi as mb
from mbcasadi.codegen import export_c
from mbcasadi.estimation import Estimator, FilterOptions, Measured, manifold_filter
from mbcasadi.system.coordinates import scalar_coordinates

PERIOD, CHUNK = 1e-3, 997  # s; ticks, no whole number of swings
NOISE, SWING, SPEED = 1e-3, 0.2, 3.0  # rad; rad; rad/s of the slider-crank


class Truth(NamedTuple):
    """What the plant keeps from one tick to the next: symbol, first value, next value."""

    now: ca.MX
    first: np.ndarray
    after: ca.MX


class Told(NamedTuple):
    """What a chunk of ticks has told.

    Attributes:
        error, deviation: (nv, ticks) of the angles and lengths, absolute.
        status: (1, ticks).
        last: q, v, q_hat, v_hat, P (all entries) at its last tick.
    """

    error: np.ndarray
    deviation: np.ndarray
    status: np.ndarray
    last: dict[str, np.ndarray]


def compiled(function: ca.Function, folder: Path) -> ca.Function:
    """Return the C of a Function."""
    return export_c(function, folder / function.name()).load(flags=("-O1",))


def chunks(
    estimator: Estimator, call: ca.Function, truth: dict, inputs: dict, drawn: ca.MX, ticks: int
) -> Iterator[Told]:
    """Yield chunks of a run of at least so many ticks.

    Args:
        estimator: of a system whose coordinates are scalars.
        call: its C.
        truth: name → `Truth`; has q and v.
        inputs: name of an input of the estimator → expression in truth and `drawn`.
        drawn: (k,) symbol of standard normal numbers, new ones in each tick.
        ticks: number of them.
    """
    z = ca.MX.sym("z", estimator.z0.size)
    out = call(z=z, **inputs)
    q, v, P = truth["q"].after, truth["v"].after, out["covariance"]
    deviation = ca.sqrt(ca.fmax(ca.diag(P)[: q.numel()], 0))
    ends = {"q": q, "v": v, "q_hat": out["q"], "v_hat": out["v"], "P": ca.vec(P)}
    now = ca.vertcat(*(part.now for part in truth.values()), z)
    after = ca.vertcat(*(part.after for part in truth.values()), out["z_next"])
    outputs = [after, ca.fabs(out["q"] - q), deviation, out["status"], *ends.values()]
    many = ca.Function("tick", [now, drawn], outputs).mapaccum("many", CHUNK)
    rng = np.random.default_rng(0)
    state = np.concatenate([*(np.ravel(p.first) for p in truth.values()), estimator.z0])
    for _ in range(-(-ticks // CHUNK)):
        found = many(state, rng.standard_normal((drawn.numel(), CHUNK)))
        state, error, spread, status, *last = (np.array(x) for x in found)
        state = state[:, -1]
        named = {name: x[:, -1] for name, x in zip(ends, last, strict=True)}
        yield Told(error, spread, status.astype(int), named)


def swing(folder: Path, name: str, joints: tuple[str, ...], density: float, ticks: int) -> str:
    """Return NEES and largest errors of a mechanism whose driven joints swing once a second."""
    system = mb.read_mjcf(mb.models.path(name))
    sensors = [Measured(joint, NOISE, kind="position") for joint in joints]
    estimator = manifold_filter(
        system, sensors, force_noise=density, options=FilterOptions(position=3e-3, speed=0.03),
        name=f"{name}_filter",
    )  # fmt: skip
    rows = [scalar_coordinates(system)[joint][0] for joint in joints]
    home, nv = estimator.z0[: system.nq], system.nv
    B = np.array(system.actuation(home))
    driven = np.flatnonzero(np.abs(B).sum(axis=1))
    q, v, t = ca.MX.sym("q", system.nq), ca.MX.sym("v", nv), ca.MX.sym("t")
    drawn = ca.MX.sym("drawn", nv + len(rows))
    goal = ca.MX(home)
    goal[driven] += SWING * ca.sin(2 * np.pi * t + 2.0 * np.arange(driven.size))
    u = np.linalg.pinv(B) @ (4.0 * (goal - q) - 0.4 * v)
    white = density / np.sqrt(PERIOD) * drawn[:nv]
    moved = compiled(truth_fun(system, PERIOD, 1), folder)(
        q=q, v=v, f=system.actuator_force(q, v, u) + white
    )
    y = moved["q_next"][rows] + NOISE * drawn[nv:]
    truth = {
        "q": Truth(q, home, moved["q_next"]),
        "v": Truth(v, np.zeros(nv), moved["v_next"]),
        "t": Truth(t, np.zeros(1), ca.fmod(t + PERIOD, 1.0)),
    }
    inputs = {"y": y, "valid": np.ones(len(rows)), "u": u, "dt": PERIOD}
    found, worst, inside, count, statuses = [], 0.0, 0, 0, set[int]()
    call = compiled(estimator.function, folder)
    for told in chunks(estimator, call, truth, inputs, drawn, ticks):
        worst, count = max(worst, told.error.max()), count + told.status.size
        inside += int(np.all(told.error <= 3 * told.deviation + 1e-9, axis=0).sum())
        statuses |= {*told.status.ravel().tolist()}
        states = (told.last[key] for key in ("q", "v", "q_hat", "v_hat"))
        value, rank = nees(system, *states, told.last["P"].reshape(2 * nv, -1))
        found.append(value / rank)
    return (
        f"{name}, {len(joints)} of its encoders: {count} ticks, NEES {np.mean(found):.2f} of 1, "
        f"inside three deviations {inside / count:.2%}, largest error {worst:.2g}, statuses "
        f"{sorted(statuses)}"
    )


def through_singular_poses(folder: Path, ticks: int) -> str:
    """Return errors of a slider-crank with equal links whose crank turns at one speed."""
    system = mb.read_mjcf(mb.models.path("slider_crank"))
    sensors, options = [Measured("crank", NOISE, kind="position")], FilterOptions(1e-3, 5.0)
    estimator = manifold_filter(system, sensors, force_noise=0.5, options=options)
    angle, drawn = ca.MX.sym("angle"), ca.MX.sym("drawn")
    middle = angle + SPEED * PERIOD / 2
    along = ca.vertcat(1, -2 * ca.sin(middle), 1)
    a, v = ca.vertcat(0, -2 * ca.cos(middle) * SPEED**2, 0), SPEED * along
    pose = ca.vertcat(middle, 2 * ca.cos(middle), middle)
    u = along.T @ (system.mass_matrix(pose) @ a + system.bias_force(pose, v))
    after = angle + SPEED * PERIOD
    q = ca.vertcat(after, 2 * ca.cos(after), after)
    rate = SPEED * ca.vertcat(1, -2 * ca.sin(after), 1)
    z0 = estimator.z0
    truth = {
        "angle": Truth(angle, z0[:1], after),
        "q": Truth(ca.MX.sym("q", 3), z0[:3], q),
        "v": Truth(ca.MX.sym("v", 3), z0[3:6], rate),
    }
    inputs = {"y": after + NOISE * drawn, "valid": 1, "u": u, "dt": PERIOD}
    worst, inside, count, statuses = 0.0, 0, 0, set[int]()
    call = compiled(estimator.function, folder)
    for told in chunks(estimator, call, truth, inputs, drawn, ticks):
        worst, count = max(worst, told.error.max()), count + told.status.size
        inside += int(np.all(told.error <= 3 * told.deviation + NOISE, axis=0).sum())
        statuses |= {*told.status.ravel().tolist()}
    passed = int(SPEED * PERIOD * count / np.pi)
    return (
        f"slider_crank, 1 encoder, {passed} times through its singular pose: {count} ticks, inside "
        f"three deviations {inside / count:.2%}, largest error {worst:.2g}, statuses "
        f"{sorted(statuses)}"
    )
