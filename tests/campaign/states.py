"""Random inputs of a case: states that its mask closes, with noise, and references near and far."""

import numpy as np
from scipy.spatial.transform import Rotation

from campaign.case import Case, Inputs, Posture, close, project
from campaign.mechanics import Array, Numbers

LARGEST_TURN = 2.5  # rad: beyond half a turn the shortest way changes its side


def draw_inputs(case: Case, number: int, seed: int) -> Inputs | None:
    """Return the inputs of a numbered tick; None where no closed pose was found."""
    _ = case.row_lengths  # measured before the first state, so that none depends on another
    rng = np.random.default_rng([seed, number])
    controller, mechanics = case.controller, case.mechanics
    nc, ne = len(case.contacts), len(controller.equality_sizes)
    mask = np.ones(nc + ne)
    if nc and rng.random() < 0.6:
        mask[:nc] = rng.random(nc) < 0.75
    if case.switched_loops and ne and rng.random() < 0.3:
        mask[nc:] = rng.random(ne) < 0.7
    on = mask[nc:]
    q, good = _closed_pose(case, rng, on)
    if not good:
        return None
    at = mechanics.numbers(q, np.zeros(mechanics.nv), on)
    feet = [
        at.frames[c.kind, c.frame].J[:3]
        for c, m in zip(case.contacts, mask, strict=False)
        if m and not case.slipping
    ]
    v = case.speed * case.rate * case.size * rng.standard_normal(mechanics.nv)
    v = project(case, np.vstack([at.A, *feet]), v * (rng.random() > 0.1))
    noise = 0.0 if not case.noisy or rng.random() < 0.3 else 10 ** rng.uniform(-10, -3)
    measured = mechanics.integrate(q, noise * case.size * rng.standard_normal(mechanics.nv))
    v = v + noise * case.rate * case.size * rng.standard_normal(mechanics.nv)
    closed_q, is_closed = close(case, measured, on)
    closed_v = project(case, mechanics.rows(closed_q, on), v)
    level = 0.0 if rng.random() < 0.1 else 10 ** rng.uniform(-5, case.largest_level)
    numbers = mechanics.numbers(closed_q, closed_v, on)
    ref = draw_reference(case, rng, measured, numbers, level)
    z = controller.z0
    if rng.random() < 0.3:
        z = rng.integers(-1, 2, z.size).astype(float)
    return Inputs(
        measured, v, ref, mask, z, noise, level, closed_q, closed_v, numbers, is_closed
    )  # fmt: skip


def _closed_pose(case: Case, rng: np.random.Generator, on: Array) -> tuple[Array, bool]:
    spread = case.spread * rng.uniform(0.2, 2.0)
    for _ in range(8):
        dv = spread * case.size * rng.standard_normal(case.mechanics.nv)
        q, good = close(case, case.mechanics.integrate(case.q0, dv), on)
        if good:
            return q, True
        spread /= 2
    return case.q0, False


def draw_reference(
    case: Case, rng: np.random.Generator, q: Array, at: Numbers, level: float
) -> Array:
    """Return a reference that is away from the present state by a share of its size."""
    controller = case.controller
    ref = np.zeros(controller.nref)
    for task in case.tasks:
        name = "posture" if isinstance(task, Posture) else task.name
        place = {
            key.removeprefix(f"{name}."): where
            for key, where in controller.reference_slices.items()
            if key.startswith(f"{name}.")
        }
        if isinstance(task, Posture):
            size, k = case.size[task.dofs], len(task.dofs)
            if case.reach is not None:
                ref[place["q"]] = q[task.places] + case.reach * rng.uniform(-1, 1, k)
                continue
            ref[place["q"]] = q[task.places] + level * size * rng.standard_normal(k)
            ref[place["v"]] = level * case.rate * size * rng.standard_normal(k)
            ref[place["a"]] = level * case.rate**2 * size * rng.standard_normal(k)
            continue
        frame = at.frames[task.frame]
        turn = level * rng.standard_normal(3)
        if case.reach is not None:
            turn = case.reach * rng.uniform(-1, 1, 3)
        turn *= min(1.0, LARGEST_TURN / max(np.linalg.norm(turn), 1e-300))
        if "quaternion" in place:
            turned = Rotation.from_rotvec(turn) * Rotation.from_matrix(frame.rotation)
            ref[place["quaternion"]] = np.roll(turned.as_quat(), 1)  # w first
        away = level * case.length * rng.standard_normal(3)
        if case.reach is not None:
            ref[place["position"]] = frame.position + case.reach * rng.uniform(-1, 1, 3)
            continue
        ref[place["position"]] = frame.position + away
        for key, scale in (("velocity", case.rate), ("acceleration", case.rate**2)):
            ref[place[key]] = level * scale * case.length * rng.standard_normal(3)
            if "quaternion" in place:
                ref[place[f"angular_{key}"]] = level * scale * rng.standard_normal(3)
    return ref
