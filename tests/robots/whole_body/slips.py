"""Walks by sensors, and what their estimators say where feet slip in one of a hundred stances.

The base moves as in the walk, and so does what its IMU reads; the leg of a foot that slips follows
it, which encoders read. What the law would do about it is not in it.

cd tests && python -m robots.whole_body.slips [--models FOLDER] go2 | g1 …
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi.estimation import LoggedInputs, estimate_log
from mbcasadi.estimation.landmarks import Landmark, landmarks_of
from mbcasadi.validation import Recording, Sensing
from robots import models
from robots.ground import Array, Ground
from robots.whole_body.humanoids import WALKS, walk_of
from robots.whole_body.quadrupeds import TROT
from robots.whole_body.sensed import estimate_cells
from robots.whole_body.trials import HUMANOIDS, QUADRUPEDS, Task, recorded, walker, whole_body

SHARE, FAR, LASTS = 0.01, 0.02, 0.05  # of the stances; m, in so many s
STEPS = 4  # of Newton's method from a leg to the one that slipped
ON = 0.5  # of a mask


def stances(mask: Array) -> Iterator[tuple[int, int]]:
    """Yield first tick and end of each stance of a foot, by its mask (ticks,)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask > ON, [0]])))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def offsets(mask: Array, dt: float, rng: np.random.Generator) -> tuple[Array, int]:
    """Return the way (ticks, 2) of a foot by slips, horizontal, m, and their number."""
    way, count, lasts = np.zeros((mask.size, 2)), 0, round(LASTS / dt)
    for first, end in stances(mask):
        if end - first > 2 * lasts and rng.random() < SHARE:
            begin, angle = rng.integers(first + 1, end - lasts), rng.uniform(0, 2 * np.pi)
            t = np.arange(begin, min(end + lasts, mask.size))  # in its swing it goes back
            share = np.clip((t - begin) / lasts, 0, 1) - np.clip((t - end) / lasts, 0, 1)
            way[t] = FAR * share[:, None] * [np.cos(angle), np.sin(angle)]
            count += 1
    return way, count


def slipped(system: mb.System, mark: Landmark, way: Array, q: Array) -> Array:
    """Return the poses (ticks, nq) with a foot where it has slipped to, its leg turned for it."""
    x = ca.SX.sym("q", system.nq)
    p, R = mark.frame.pose(x)
    at = ca.Function("at", [x], [p, R, mark.frame.jacobian(x)])
    poses, rows = q.copy(), slice(0, 6 if mark.sole else 3)
    for k in np.flatnonzero(np.any(way != 0, axis=1)):
        there, kept, _ = (value.full() for value in at(q[k]))
        there[:2, 0] += way[k]
        for _ in range(STEPS):
            p, R, J = (value.full() for value in at(poses[k]))
            turn = kept @ R.T
            spin = np.array([turn[2, 1], turn[0, 2], turn[1, 0]])
            J[:, :6] = 0  # of the base
            step = np.linalg.pinv(J[rows]) @ np.concatenate([(there - p).ravel(), spin])[rows]
            poses[k] = system.integrate(poses[k], step).full().ravel()
    return poses


def with_slips(
    recording: Recording, system: mb.System, feet: list[mb.Contact], sensing: Sensing, seed: int = 0
) -> tuple[Recording, int]:
    """Return the recording with what the estimator says where feet slip, and how many do."""
    estimator, rng = sensing.estimator, np.random.default_rng(seed)
    monitor, dt, total = dict(recording.monitor), estimator.period, 0
    y, q = monitor["estimate_y"].copy(), recording.q
    places = {joint.name: joint.qpos for joint in system.tree.joints}
    for mark in (mark for foot in landmarks_of(system, feet, 1.0) for mark in foot):
        mask = monitor["estimate_mask"][:, list(mark.members)].min(axis=1)
        way, count = offsets(mask, dt, rng)
        gap, total = slipped(system, mark, way, q) - q, total + count
        rate = np.diff(gap, axis=0, prepend=gap[:1]) / dt
        for sensor in estimator.sensors:
            if sensor.kind in ("position", "rate"):
                moved = gap if sensor.kind == "position" else rate
                y[:, sensor.rows[0]] += moved[:, places[sensor.target]]
    sizes = {signal.name: len(signal.components) for signal in estimator.inputs}
    inputs = {"y": y, "valid": np.ones((len(y), sizes["valid"]))}
    inputs |= {"mask": monitor["estimate_mask"], "dt": np.full((len(y), 1), dt)}
    said = estimate_log(estimator, LoggedInputs(recording.t, inputs))
    monitor |= {"estimate_q": said.q, "estimate_v": said.v, "estimate_deviation": said.deviation}
    monitor["estimate_error"] = said.errors(system, q, recording.v)
    monitor["estimate_status"] = said.status[:, None]
    return replace(recording, monitor=monitor), total


def rows(key: str) -> Iterator[str]:
    """Yield the line of a walk by sensors, and that of the same with slips."""
    robot, humanoid = walker(key, Ground(), sensed=True), key in HUMANOIDS
    task = WALKS if humanoid else Task("trot and turn", 1.0, 30.0, turn=0.5)
    with whole_body(robot, walk_of(robot) if humanoid else TROT) as loop:
        recording, _ = recorded(robot, task, loop)
        period = loop[0].controller.period
    sensing = robot.sensing(period)
    yield f"| {key} | {task.name} | {estimate_cells(recording, robot.model.compile())} |"
    found, count = with_slips(recording, robot.system, robot.feet, sensing)
    yield f"| {key} | {count} slips | {estimate_cells(found, robot.model.compile())} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="robots.whole_body.slips", description=__doc__)
    robots = {**QUADRUPEDS, **HUMANOIDS}
    parser.add_argument("robots", nargs="+", choices=[*robots])
    models.add_argument(parser)
    chosen = parser.parse_args().robots
    print("| robot | task | velocity RMS, m/s | tilt RMS, largest, ° | drift | inside 3 σ |")
    print("|---|---|---|---|---|---|")
    for each in chosen:
        for row in rows(each):
            print(row, flush=True)
