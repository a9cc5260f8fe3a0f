"""The inverse dynamics in all its unknowns z = (b, p', lam', f'): a scaled dense QP.

    min ½ |R z - r|²  subject to  E z = e,  C z <= d.

`b = Lᵀ a` with `M = L Lᵀ` (M completed along the rows where it is singular), so that every
equation and every unknown has the size of the others, in any unit system. The rank of the rows
comes from singular values, and rows are kept as orthonormal combinations.
"""

from dataclasses import dataclass

import numpy as np
from campaign.case import Case, Inputs, Pose
from campaign.mechanics import Array, skew
from scipy.linalg import solve_triangular
from scipy.spatial.transform import Rotation

CERTAINLY_ZERO = 1e-7  # relative singular values below it are of dependent rows,
CERTAINLY_NOT = 2e-2  # above it of independent ones; the controller's rule decides between them
SEMIDEFINITE = 1e-10  # eigenvalue of M, relative to the largest of its scaled form
NOTHING = 1e-9  # of the tasks' error by natural accelerations: a problem without size
CONSISTENT = 1e-7  # part of c that no acceleration can meet, relative


@dataclass
class Full:
    """The QP, the way back to a, p, f, and what was found about its rows."""

    R: Array
    r: Array
    E: Array
    e: Array
    C: Array
    d: Array
    unit: Array
    L: Array
    alpha: float
    scale_p: Array
    scale_f: Array
    cost_scale: float
    rows: Array
    bias: Array
    definite: bool
    determined: bool
    consistent: bool
    basis_A: Array
    sizes: tuple[int, int, int, int]
    task_R: Array
    task_r: Array
    floor: float

    def split(self, z: Array) -> tuple[Array, Array, Array]:
        """Return a, p, f of z."""
        nv, nu, nl, _ = self.sizes
        b, p, f = z[:nv], z[nv : nv + nu], z[nv + nu + nl :]
        a = solve_triangular(self.L.T, b) * self.alpha
        return a, p * self.scale_p, f * self.scale_f

    def join(self, a: Array, p: Array, f: Array) -> tuple[Array, float]:
        """Return z of an answer, multipliers by least squares, and the residual of the dynamics."""
        nv, nu, nl, nf = self.sizes
        z = np.zeros(nv + nu + nl + nf)
        z[:nv] = self.L.T @ a / self.alpha
        z[nv : nv + nu] = p / self.scale_p
        z[nv + nu + nl :] = f / self.scale_f if nf else 0.0
        rest = self.e[:nv] - self.E[:nv] @ z
        lam = -self.basis_A @ rest
        z[nv + nu : nv + nu + nl] = lam
        forces = np.linalg.norm(z[:nv]) + np.linalg.norm(z[nv:]) + 1e-150
        rest = self.e[:nv] - self.E[:nv] @ z
        return z, float(np.linalg.norm(rest) / forces)


def assemble(case: Case, inputs: Inputs) -> Full:
    """Return the full problem at a tick's closed state."""
    at, nc = inputs.numbers, len(case.contacts)
    active = [c for c, m in zip(case.contacts, inputs.mask, strict=False) if m > 0.5]
    frames = [at.frames[c.kind, c.frame] for c in active]
    axes = [contact_axes(c.normal) for c in active]
    nv, nu = at.B.shape
    J = np.vstack([np.zeros((0, nv)), *(x @ f.J[:3] for x, f in zip(axes, frames, strict=True))])
    c_J = np.concatenate([np.zeros(0), *(x @ f.c[:3] for x, f in zip(axes, frames, strict=True))])
    L, definite = inertia_root(case, at, inputs.mask[nc:])
    lengths = case.lengths_on(inputs.mask[nc:])
    whitened_A = solve_triangular(L, at.A.T, lower=True).T
    whitened_J = solve_triangular(L, J.T, lower=True).T
    internal, external = body_forces(case, inputs, active, axes, frames)
    contact_rows, contact_bias = external @ whitened_J, external @ c_J
    size = np.concatenate(
        [whitened_lengths(case, at, whitened_A, lengths), row_sizes(contact_rows)]
    )
    rows = np.vstack([whitened_A, contact_rows]) / size[:, None]
    bias = np.concatenate([at.c, contact_bias]) / size
    kept, kept_bias, values, rest = independent(rows, bias)
    basis_A = independent(rows[: len(at.A)], bias[: len(at.A)])[0]
    B, f = solve_triangular(L, at.B, lower=True), solve_triangular(L, at.f, lower=True)
    M = solve_triangular(L, solve_triangular(L, at.M, lower=True).T, lower=True)
    acceleration = np.linalg.norm(f) + np.linalg.norm(kept_bias)
    alpha = acceleration or 1.0
    scale_p = alpha / np.maximum(np.linalg.norm(B, axis=0), 1e-9 * np.linalg.norm(B) + 1e-300)
    scale_f = alpha / row_sizes(whitened_J)
    nl, nf = len(basis_A), len(J)
    E = np.hstack([M, -B * scale_p / alpha, -basis_A.T, -whitened_J.T * scale_f / alpha])
    still = np.hstack([kept, np.zeros((len(kept), nu + nl + nf))])
    E, e = np.vstack([E, still]), np.concatenate([f, -kept_bias]) / alpha
    if case.controller.internal_forces == "none" and nf:
        U = orthonormal(internal)
        none = np.hstack([np.zeros((len(U), nv + nu + nl)), U * scale_f / scale_f.max()])
        E, e = np.vstack([E, none]), np.concatenate([e, np.zeros(len(U))])
    R, r, task_R, task_r, cost_scale = costs(
        case, inputs, L, (alpha, scale_p, scale_f), internal, (nv, nu, nl, nf)
    )
    C, d, unit = inequalities(
        case.force_range(inputs), active, (scale_p, scale_f), (nv, nu, nl, nf)
    )
    between = (values > CERTAINLY_ZERO) & (values < CERTAINLY_NOT)
    return Full(
        R=R, r=r, E=E, e=e, C=C, d=d, unit=unit, L=L, alpha=alpha, scale_p=scale_p,
        scale_f=scale_f, cost_scale=cost_scale, rows=rows, bias=bias, definite=definite,
        determined=not between.any(),
        consistent=bool(rest <= CONSISTENT * (np.linalg.norm(bias) + acceleration * 1e-3)),
        basis_A=basis_A, sizes=(nv, nu, nl, nf), task_R=task_R, task_r=task_r,
        floor=NOTHING * natural_error(case) / cost_scale,
    )  # fmt: skip


def inertia_root(case: Case, at, on: Array) -> tuple[Array, bool]:
    """Return L with `L Lᵀ = M`, completed along the rows where M is singular, and if it could."""
    M, size = at.M, case.metric
    scaled = M * np.outer(size, size)
    if np.linalg.eigvalsh(scaled)[0] <= SEMIDEFINITE * np.abs(np.diag(scaled)).max():
        A = at.A * size
        lengths = case.lengths_on(on)[:, None]
        _, s, Vt = np.linalg.svd(A / lengths, full_matrices=True)
        rank = int(np.sum(s > CERTAINLY_NOT))
        V, free = Vt[:rank], Vt[rank:]
        mean = np.trace(scaled) / len(scaled)
        definite = not len(free) or (
            np.linalg.eigvalsh(free @ scaled @ free.T)[0] > SEMIDEFINITE * mean
        )
        scaled = scaled + mean * V.T @ V
        M = scaled / np.outer(size, size)
        if not definite:
            return np.linalg.cholesky(M + np.diag(mean / size**2)), False
    return np.linalg.cholesky(M), True


def whitened_lengths(case: Case, at, rows: Array, usual: Array) -> Array:
    """Return the usual length of each row in the inertia's metric: its own, unless it vanishes."""
    own = np.linalg.norm(rows, axis=1)
    here = np.linalg.norm(at.A * case.metric, axis=1)
    typical = np.median(own / np.maximum(here, 1e-300)) if len(own) else 1.0
    return np.maximum(own, np.where(here < 0.05 * usual, typical * usual, 0.0)) + 1e-300


def row_sizes(rows: Array) -> Array:
    """Return the lengths of rows, none of them tiny."""
    lengths = np.linalg.norm(rows, axis=1)
    return np.maximum(lengths, 1e-3 * lengths.max(initial=0.0) + 1e-300)


def independent(rows: Array, bias: Array) -> tuple[Array, Array, Array, float]:
    """Return orthonormal independent combinations, their bias, singular values, and the rest of c."""
    if not len(rows):
        return rows, bias, np.zeros(0), 0.0
    U, s, Vt = np.linalg.svd(rows, full_matrices=False)
    keep = s > np.sqrt(CERTAINLY_ZERO * CERTAINLY_NOT)
    part = U[:, keep].T @ bias
    rest = float(np.linalg.norm(bias - U[:, keep] @ part))
    return Vt[keep], part / s[keep], s, rest


def orthonormal(projector: Array) -> Array:
    """Return an orthonormal basis of the range of a projector, as rows."""
    values, vectors = np.linalg.eigh(projector)
    return vectors[:, values > 0.5].T


def contact_axes(normal) -> Array:
    """Return rows n, t1, t2: t1 is the world's x axis in the tangent plane, or y near x."""
    n = np.asarray(normal, dtype=float) / np.linalg.norm(normal)
    along = np.array([0.0, 1.0, 0.0]) if abs(n[0]) > np.sqrt(0.5) else np.array([1.0, 0.0, 0.0])
    t1 = along - n * (n @ along)
    t1 /= np.linalg.norm(t1)
    return np.vstack([n, t1, np.cross(n, t1)])


def body_forces(case: Case, inputs: Inputs, active, axes, frames) -> tuple[Array, Array]:
    """Return the projector on forces that do nothing to the body that carries them, and the rest.

    The rest are orthonormal rows: what several points of one body do to it, at most six of them.
    """
    nf = 3 * len(active)
    projector, external = np.zeros((nf, nf)), []
    on = [i for i, m in enumerate(inputs.mask[: len(case.contacts)]) if m > 0.5]
    for root in dict.fromkeys(case.contact_roots[i] for i in on):
        group = [k for k, i in enumerate(on) if case.contact_roots[i] == root]
        places = [3 * k + i for k in group for i in range(3)]
        centre = np.mean([frames[k].position for k in group], axis=0)
        arms = [frames[k].position - centre for k in group]
        reach = np.abs(arms).max() or 1.0
        E = np.vstack(
            [
                axes[k] @ np.hstack([np.eye(3), -skew(r) / reach])
                for k, r in zip(group, arms, strict=True)
            ]
        )
        U, s, _ = np.linalg.svd(E)
        rank = int(np.sum(s > CERTAINLY_ZERO * s[0]))
        projector[np.ix_(places, places)] = U[:, rank:] @ U[:, rank:].T
        rows = np.zeros((rank, nf))
        rows[:, places] = U[:, :rank].T
        external.append(rows)
    return projector, np.vstack([np.zeros((0, nf)), *external])


def task_rows(case: Case, inputs: Inputs) -> list[tuple[Array, Array, Array]]:
    """Return (J, right side, weight) of each task at the closed state."""
    q, v, at = inputs.closed_q, inputs.closed_v, inputs.numbers
    reference = {key: inputs.ref[place] for key, place in case.controller.reference.items()}
    rows = []
    for task in case.tasks:
        kd = 2 * np.sqrt(task.kp)
        if isinstance(task, Pose):
            frame = at.frames[task.frame]
            part = {key: reference[f"{task.name}.{key}"] for key in POSE_SLICES}
            w, x, y, z = part["quaternion"]
            apart = Rotation.from_quat([x, y, z, w]) * Rotation.from_matrix(frame.rotation).inv()
            error = np.concatenate([part["position"] - frame.position, apart.as_rotvec()])
            rate = np.concatenate([part["velocity"], part["angular_velocity"]]) - frame.J @ v
            a_ref = np.concatenate([part["acceleration"], part["angular_acceleration"]])
            rows.append((frame.J, a_ref + kd * rate + task.kp * error - frame.c, task.weight))
        else:
            error = reference["posture.q"] - q[task.places]
            rate = reference["posture.v"] - v[task.dofs]
            right = reference["posture.a"] + kd * rate + task.kp * error
            rows.append((np.eye(case.mechanics.nv)[task.dofs], right, task.weight))
    return rows


def natural_error(case: Case) -> float:
    """Return the tasks' weighted error by accelerations as the mechanism swings."""
    errors = []
    for task in case.tasks:
        size = case.size[task.dofs] if not isinstance(task, Pose) else case.length
        errors.append(np.sqrt(np.sum(task.weight * (case.rate**2 * size) ** 2)))
    return float(np.linalg.norm(errors))


POSE_SLICES = (
    "position", "velocity", "acceleration", "quaternion", "angular_velocity",
    "angular_acceleration",
)  # fmt: skip


def costs(case: Case, inputs: Inputs, L: Array, scales, internal: Array, sizes):
    """Return R, r of all costs, those of the tasks alone, and the scale that divides them."""
    alpha, scale_p, scale_f = scales
    nv, nu, nl, nf = sizes
    weights = case.controller.force_weights
    parts, rights = [], []
    for J, right, weight in task_rows(case, inputs):
        root = np.sqrt(weight)
        parts.append(root[:, None] * solve_triangular(L, J.T, lower=True).T * alpha)
        rights.append(root * right)
    task_R, task_r = np.vstack(parts), np.concatenate(rights)
    scale = np.linalg.norm(task_R, 2) or 1.0
    n = nv + nu + nl + nf
    R = np.zeros((len(task_R) + nu + nf, n))
    R[: len(task_R), :nv] = task_R
    R[len(task_R) : len(task_R) + nu, nv : nv + nu] = np.diag(np.sqrt(weights.actuators) * scale_p)
    R[len(task_R) + nu :, nv + nu + nl :] = np.sqrt(weights.internal) * internal * scale_f
    r = np.concatenate([task_r, np.zeros(nu + nf)])
    if case.controller.force_weight and nf:
        extra = np.zeros((nf, n))
        extra[:, nv + nu + nl :] = np.sqrt(case.controller.force_weight) * np.diag(scale_f)
        R, r = np.vstack([R, extra]), np.concatenate([r, np.zeros(nf)])
    return R / scale, r / scale, task_R / scale, task_r / scale, scale


def inequalities(ranges: Array, active, scales, sizes):
    """Return `C z <= d` and the size of each row, for forces of unit size."""
    scale_p, scale_f = scales
    nv, nu, nl, nf = sizes
    n, C, d = nv + nu + nl + nf, [], []
    for i, (low, high) in enumerate(ranges):
        for sign, bound in ((1.0, high), (-1.0, -low)):
            if np.isfinite(bound):
                row = np.zeros(n)
                row[nv + i] = sign
                C.append(row)
                d.append(bound / scale_p[i])
    for k, contact in enumerate(active):
        first = nv + nu + nl + 3 * k
        scale = scale_f[3 * k : 3 * k + 3]
        inner = contact.friction * np.cos(np.pi / contact.sides)
        for i in range(contact.sides):
            angle = 2 * np.pi * i / contact.sides
            row = np.zeros(n)
            row[first : first + 3] = np.array([-inner, np.cos(angle), np.sin(angle)]) * scale
            C.append(row / scale.max())
            d.append(0.0)
        highest = np.inf if contact.max_force is None else contact.max_force
        for sign, bound in ((1.0, highest), (-1.0, -contact.min_force)):
            if np.isfinite(bound) and (sign > 0 or contact.min_force > 0):
                row = np.zeros(n)
                row[first] = sign
                C.append(row)
                d.append(bound / scale[0])
    C, d = np.array(C).reshape(-1, n), np.array(d)
    return C, d, np.linalg.norm(C, axis=1)
