"""The inverse dynamics in all its unknowns z = (b, p', lam', f'): a scaled dense QP.

    min ½ |R z - r|²  subject to  E z = e,  C z <= d.

`b = Lᵀ a` with `M = L Lᵀ` (M completed along the rows where it is singular), so that every
equation and every unknown has the size of the others, in any unit system. The rank of the rows
comes from singular values, and rows are kept as orthonormal combinations.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import solve_triangular

from campaign.case import Case, Inputs
from campaign.contact_forces import body_forces, contact_axes
from campaign.mechanics import Array
from campaign.rows import (
    CERTAINLY_NOT,
    CERTAINLY_ZERO,
    independent,
    inertia_root,
    orthonormal,
    row_sizes,
    whitened_lengths,
)
from campaign.tasks import natural_error, task_rows

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
    loop_basis: Array
    sizes: tuple[int, int, int, int]
    task_root: Array
    task_right: Array
    task_weight: Array
    floor: float
    cones: list[tuple[int, Array]] = field(default_factory=list)  # first column, sizes of s

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
        lam = -self.loop_basis @ rest
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
    c_J = c_J + case.controller.contact_damping * (J @ inputs.closed_v)
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
    loop_bias = at.c + stabilisation(case, inputs)
    bias = np.concatenate([loop_bias, contact_bias]) / size
    kept, kept_bias, values, rest = independent(rows, bias)
    loop_basis = independent(rows[: len(at.A)], bias[: len(at.A)])[0]
    B, f = solve_triangular(L, at.B, lower=True), solve_triangular(L, at.f, lower=True)
    M = solve_triangular(L, solve_triangular(L, at.M, lower=True).T, lower=True)
    acceleration = np.linalg.norm(f) + np.linalg.norm(kept_bias)
    alpha = acceleration or 1.0
    scale_p = alpha / np.maximum(np.linalg.norm(B, axis=0), 1e-9 * np.linalg.norm(B) + 1e-300)
    scale_f = alpha / row_sizes(whitened_J)
    nl, nf = len(loop_basis), len(J)
    E = np.hstack([M, -B * scale_p / alpha, -loop_basis.T, -whitened_J.T * scale_f / alpha])
    still = np.hstack([kept, np.zeros((len(kept), nu + nl + nf))])
    E, e = np.vstack([E, still]), np.concatenate([f, -kept_bias]) / alpha
    if case.controller.internal_forces == "none" and nf:
        U = orthonormal(internal)
        none = np.hstack([np.zeros((len(U), nv + nu + nl)), U * scale_f / scale_f.max()])
        E, e = np.vstack([E, none]), np.concatenate([e, np.zeros(len(U))])
    R, r, task_root, task_right, cost_scale = costs(
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
        loop_basis=loop_basis, sizes=(nv, nu, nl, nf), task_root=task_root, task_right=task_right,
        task_weight=np.sqrt(np.concatenate([task.weight for task in case.tasks])),
        floor=NOTHING * natural_error(case) / cost_scale,
        cones=quadratic_cones(active, scale_f, nv + nu + nl),
    )  # fmt: skip


def stabilisation(case: Case, inputs: Inputs) -> Array:
    """Return `2 ω A v + ω² phi` of the measured state, for each row that is on."""
    omega, on = case.controller.stabilisation, inputs.mask[len(case.contacts) :]
    if not omega:
        return np.zeros(len(inputs.numbers.A))
    A, phi = case.mechanics.rows(inputs.q, on), case.mechanics.residual(inputs.q, on)
    return np.asarray(2 * omega * A @ inputs.v + omega**2 * phi)


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
    task_root, task_right = np.vstack(parts), np.concatenate(rights)
    scale = np.linalg.norm(task_root, 2) or 1.0
    n = nv + nu + nl + nf
    R = np.zeros((len(task_root) + nu + nf, n))
    R[: len(task_root), :nv] = task_root
    R[len(task_root) : len(task_root) + nu, nv : nv + nu] = np.diag(
        np.sqrt(weights.actuators) * scale_p
    )
    R[len(task_root) + nu :, nv + nu + nl :] = np.sqrt(weights.internal) * internal * scale_f
    r = np.concatenate([task_right, np.zeros(nu + nf)])
    if case.controller.force_weight and nf:
        extra = np.zeros((nf, n))
        extra[:, nv + nu + nl :] = np.sqrt(case.controller.force_weight) * np.diag(scale_f)
        R, r = np.vstack([R, extra]), np.concatenate([r, np.zeros(nf)])
    return R / scale, r / scale, task_root / scale, task_right / scale, scale


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
        inner = contact.friction
        if contact.cone == "inner":
            inner *= np.cos(np.pi / contact.sides)
        for i in range(contact.sides if contact.cone != "quadratic" else 0):
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


def quadratic_cones(active, scale_f: Array, first: int) -> list[tuple[int, Array]]:
    """Return the first column in z, and the scales of (mu f_n, f_t1, f_t2), of each cone."""
    return [
        (first + 3 * k, scale_f[3 * k : 3 * k + 3] * np.array([contact.friction, 1.0, 1.0]))
        for k, contact in enumerate(active)
        if contact.cone == "quadratic"
    ]
