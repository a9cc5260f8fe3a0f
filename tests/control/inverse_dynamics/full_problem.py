"""Inverse dynamics the long way: the QP in (a, p, lam, f) by NumPy, singular values and NNLS.

An independent judge of the condensed form. It shares with it only the System's matrices:
nothing is eliminated by formulas of the package, ranks come from singular values, and the
least-distance problem is solved by Lawson and Hanson's reduction to non-negative least squares,
which also tells an infeasible problem.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.testing import assert_allclose
from scipy.optimize import nnls
from scipy.spatial.transform import Rotation

from mbcasadi.control import PostureTask
from mbcasadi.description.status import Status

RANK_TOL = 1e-9  # of singular values relative to the largest; data are exact to 1e-15
INFEASIBLE = 1e-9  # NNLS residual of an infeasible least-distance problem is zero
# Two solvers, condition numbers of the Hessian up to 1e9: rounding 1e-16 times its root, twice.
FORCE = 2e-5  # N, N m, relative to the largest force
ACCELERATION = 5e-7  # relative to the largest acceleration


def numbers(value):
    return np.array(value, dtype=float)


def column(value):
    return numbers(value).ravel()


@dataclass
class Full:
    """Data of the full problem; tasks are (J, rhs, weight)."""

    M: np.ndarray
    f: np.ndarray
    B: np.ndarray
    A: np.ndarray
    c: np.ndarray
    J: np.ndarray
    c_contact: np.ndarray
    pyramid: np.ndarray
    tasks: list
    limits: np.ndarray
    internal: np.ndarray
    torque_weight: np.ndarray
    internal_weight: float
    normal_range: list = field(default_factory=list)
    accelerations: list = field(default_factory=list)  # (dof, least, largest)
    force_weight: float = 0.0
    force_reference: np.ndarray | float = 0.0


@dataclass
class Answer:
    feasible: bool
    a: np.ndarray
    p: np.ndarray
    force: np.ndarray
    cost: float = np.nan


def solve(full):
    nv, nu = full.B.shape
    E, e, of_p, of_f = equations(full)
    size, nf = E.shape[1], len(of_f)
    roots = [
        np.hstack([np.sqrt(w)[:, None] * T, np.zeros((len(T), size - nv))])
        for T, _, w in full.tasks
    ]
    rights = [np.sqrt(w) * r for _, r, w in full.tasks]
    roots += [np.sqrt(full.torque_weight)[:, None] * of_p]
    roots += [np.sqrt(full.internal_weight) * full.internal @ of_f]
    roots += [np.sqrt(full.force_weight) * of_f]
    rights += [np.zeros(nu), np.zeros(nf)]
    rights += [np.sqrt(full.force_weight) * np.broadcast_to(full.force_reference, nf)]
    C, d = inequalities(full, of_p, of_f)
    z, feasible = least_squares_within(np.vstack(roots), np.concatenate(rights), E, e, C, d)
    cost = np.sum((np.vstack(roots) @ z - np.concatenate(rights)) ** 2) / 2
    return Answer(feasible, z[:nv], z[nv : nv + nu], z[size - nf :].reshape(-1, 3), cost)


def inequalities(full, of_p, of_f):
    """Return `C z <= d`."""
    finite_high, finite_low = np.isfinite(full.limits[:, 1]), np.isfinite(full.limits[:, 0])
    C = [of_p[finite_high], -of_p[finite_low], full.pyramid @ of_f]
    d = [full.limits[finite_high, 1], -full.limits[finite_low, 0], np.zeros(len(full.pyramid))]
    for dof, low, high in full.accelerations:
        row = np.eye(of_p.shape[1])[dof : dof + 1]
        C += [row, -row]
        d += [[high], [-low]]
    for i, (low, high) in enumerate(full.normal_range):
        C += [-of_f[3 * i : 3 * i + 1], of_f[3 * i : 3 * i + 1]]
        d += [[-low], [high]]
    return np.vstack(C), np.concatenate(d)


def independent(A, c):
    """Return orthonormal combinations of the rows that are independent (least squares)."""
    if len(A) == 0:
        return A, c
    U, S, _ = np.linalg.svd(A, full_matrices=False)
    keep = RANK_TOL * max(S.max(initial=0.0), 1e-3) < S
    return U[:, keep].T @ A, U[:, keep].T @ c


def least_squares_within(root, right, E, e, C, d):
    """Return `argmin |root z - right|` subject to `E z = e`, `C z <= d`, and if it exists."""
    U, S, Vt = np.linalg.svd(E)
    keep = RANK_TOL * S[0] < S
    z0 = Vt[: keep.sum()].T @ ((U[:, : keep.sum()].T @ e) / S[keep])
    N = Vt[keep.sum() :].T
    # Least distance in x = R y - Qᵀ b, where root N = Q R (Lawson & Hanson 1974, chapter 23).
    Q, R = np.linalg.qr(root @ N)
    b = Q.T @ (right - root @ z0)
    by_x = C @ N @ np.linalg.inv(R)
    G, h = -by_x, C @ z0 + by_x @ b - d
    scale = np.linalg.norm(G, axis=1)
    usable = scale > 1e-12 * scale.max(initial=1.0)
    G, h = G[usable] / scale[usable, None], h[usable] / scale[usable]
    x, feasible = least_distance(G, h)
    return z0 + N @ np.linalg.solve(R, x + b), feasible


def least_distance(G, h):
    """Return `argmin |x|` subject to `G x >= h`, and whether there is one."""
    size = max(1.0, np.abs(h).max(initial=0.0))
    stacked = np.vstack([G.T, h[None, :] / size])
    target = np.zeros(len(stacked))
    target[-1] = 1.0
    dual, _ = nnls(stacked, target, maxiter=50 * stacked.shape[1])
    rest = stacked @ dual - target
    if np.linalg.norm(rest) < INFEASIBLE:
        return np.zeros(G.shape[1]), False
    return -rest[:-1] / rest[-1] * size, True


def rotation_error(quat_ref, R):
    """Return the rotation vector, world axes, from R to the reference."""
    w, x, y, z = quat_ref
    return (Rotation.from_quat([x, y, z, w]) * Rotation.from_matrix(R).inv()).as_rotvec()


def full_problem(system, q, v, tasks, contacts, limits, on=None, *, weights):
    """Return the full problem of a system whose actuators are motors of unit gain.

    Args:
        tasks: list of (J, rhs, weight).
        contacts: descriptions; `on` marks the active ones.
        limits: (nu, 2).
        weights: of the actuator forces (nu,) and of internal forces, `controller.force_weights`.
    """
    moving, active = [], chosen(contacts, on)
    for contact in active:
        frame, axes = system.frame(contact.frame, contact.kind), frame_axes(contact.normal)
        J, c = axes @ numbers(frame.jacobian(q))[:3], axes @ column(frame.bias(q, v))[:3]
        moving.append(Point(J, c, axes, column(frame.pose(q)[0]), frame.carrier.body))
    dynamics = {
        "M": numbers(system.mass_matrix(q)),
        "f": column(system.passive_force(q, v)) - column(system.bias_force(q, v)),
        "B": numbers(system.actuation(q)),
        "A": numbers(system.constraint_jacobian(q)) if system.nc else np.zeros((0, system.nv)),
        "c": column(system.constraint_bias(q, v)) if system.nc else np.zeros(0),
    }
    return assembled(dynamics, moving, active, tasks, limits, weights)


def frame_axes(normal):
    n = np.asarray(normal, dtype=float) / np.linalg.norm(normal)
    along = np.array([0.0, 1.0, 0.0]) if abs(n[0]) > np.sqrt(0.5) else np.array([1.0, 0.0, 0.0])
    t1 = along - n * (n @ along)
    t1 /= np.linalg.norm(t1)
    return np.vstack([n, t1, np.cross(n, t1)])


def normal_ranges(contacts):
    return [
        (c.min_force, np.inf if c.max_force is None else c.max_force)
        for c in contacts
        if c.min_force > 0 or c.max_force is not None
    ]


def pyramid(contacts):
    """Return the rows F of `F f <= 0`: the faces of all pyramids."""
    faces = []
    for k, contact in enumerate(contacts):
        for i in range(contact.sides):
            angle = 2 * np.pi * i / contact.sides
            face = np.zeros(3 * len(contacts))
            inner = contact.friction * np.cos(np.pi / contact.sides)
            face[3 * k : 3 * k + 3] = [-inner, np.cos(angle), np.sin(angle)]
            faces.append(face)
    return np.array(faces).reshape(len(faces), 3 * len(contacts))


def internal_projector(bodies, nc):
    """Return the projector onto forces that do nothing to the body that carries them.

    Args:
        bodies: for each body its contacts: (index, axes, place in the world).
        nc: number of contacts.
    """
    projector = np.zeros((3 * nc, 3 * nc))
    for points in bodies:
        if len(points) == 1:
            continue
        centre = np.mean([p for _, _, p in points], axis=0)
        places = [3 * k + i for k, _, _ in points for i in range(3)]
        E = np.vstack([axes @ np.hstack([np.eye(3), -skew(p - centre)]) for _, axes, p in points])
        U, S, _ = np.linalg.svd(E)
        rank = int(np.sum(RANK_TOL * S[0] < S))
        projector[np.ix_(places, places)] = U[:, rank:] @ U[:, rank:].T
    return projector


def skew(r):
    return np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])


def posture(system, q, v, ref, dofs, places, kp, weight):
    """Return the task of hinges and slides as (J, rhs, weight); `ref` is (q, v, a)."""
    J = np.eye(system.nv)[dofs]
    kd = 2 * np.sqrt(kp)
    rhs = ref[2] + kd * (ref[1] - v[dofs]) + kp * (ref[0] - q[places])
    return J, rhs, np.full(len(dofs), weight)


def pose_task(system, name, kind, q, v, ref, kp, weight):
    """Return the task of a full pose; `ref` is (p, v, a, quat, w, alpha)."""
    frame = system.frame(name, kind)
    J, p, R = numbers(frame.jacobian(q)), *map(numbers, frame.pose(q))
    error = np.concatenate([ref[0] - p.ravel(), rotation_error(ref[3], R)])
    rate = np.concatenate([ref[1], ref[4]]) - J @ v
    rhs = np.concatenate([ref[2], ref[5]]) + 2 * np.sqrt(kp) * rate + kp * error
    return J, rhs - column(frame.bias(q, v)), np.full(6, weight)


def tasks_of(law, q, v, ref):
    """Return the tasks of a law, poses of frames and postures, as (J, rhs, weight)."""
    system, found = law.system, []
    for task in law.tasks:
        part = {n.split(".")[1]: ref[p] for n, p in law.reference_slices.items()
                if n.split(".")[0] == task.name}  # fmt: skip
        if isinstance(task, PostureTask):
            joints = {joint.name: joint for joint in system.tree.joints}
            joints = [joints[name] for name in task.components(system)]
            places = [[joint.dof for joint in joints], [joint.qpos for joint in joints]]
            parts = [part[x] for x in "qva"]
            found.append(posture(system, q, v, parts, *places, task.kp, task.weight))
        else:
            names = ("position", "velocity", "acceleration", "quaternion")
            names += ("angular_velocity", "angular_acceleration")
            parts = [part[x] for x in names]
            args = (task.frame, task.kind, q, v, parts, task.kp, task.weight)
            found.append(pose_task(system, *args))
    return found


def judged(law, q, v, ref, on=None, **changes):
    """Return the optimum of a law's problem, fields of which may change."""
    tasks, limits = tasks_of(law, q, v, ref), law.system.limits.ctrl
    full = full_problem(
        law.system, q, v, tasks, law.contacts, limits, on, weights=law.force_weights
    )
    return solve(replace(full, **changes))


def compare(solution, answer, on=None):
    """Assert that both agree, or that both call the problem infeasible; return if it is solved.

    Forces of the contacts that are on are compared where `on` tells which.
    """
    assert answer.feasible == (solution.status == Status.SOLVED), solution.explain()
    if not answer.feasible:
        assert solution.status == Status.INFEASIBLE, solution.explain()
        return False
    parts = answer.a, answer.p, answer.force
    a, p, force = (max(1.0, np.abs(x).max(initial=0.0)) for x in parts)
    assert_allclose(solution.a, answer.a, atol=ACCELERATION * a)
    assert_allclose(solution.p, answer.p, atol=FORCE * p)
    if on is not None:
        on = np.array(on, dtype=bool)
        assert_allclose(solution.contact_forces[on], answer.force, atol=FORCE * force)
        assert not np.any(solution.contact_forces[~on])
    return True


def equations(full):
    """Return E, e of dynamics and constraints, and p and f as rows over z = (a, p, lam, f)."""
    nv, nu = full.B.shape
    A, c = independent(full.A, full.c)
    J, c_contact = independent(full.J, full.c_contact)
    kept, bias = independent(np.vstack([A, J]), np.concatenate([c, c_contact]))
    nf, size = len(full.J), nv + nu + len(A) + len(full.J)
    dynamics = np.hstack([full.M, -full.B, -A.T, -full.J.T])
    still = np.hstack([kept, np.zeros((len(kept), size - nv))])
    of_p, of_f = np.eye(nu, size, nv), np.eye(nf, size, size - nf)
    return np.vstack([dynamics, still]), np.concatenate([full.f, -bias]), of_p, of_f


def chosen(contacts, on):
    return [contact for k, contact in enumerate(contacts) if on is None or on[k]]


class Point(NamedTuple):
    """A contact's J (3, nv) and bias (3,) in its axes, its place in the world, its body."""

    J: np.ndarray
    c: np.ndarray
    axes: np.ndarray
    place: np.ndarray
    body: int


def assembled(dynamics, moving, active, tasks, limits, weights):
    """Return the full problem from M, f, B, A, c by name and the points of active contacts."""
    bodies, none = {}, np.zeros((0, len(dynamics["f"])))
    for k, point in enumerate(moving):
        bodies.setdefault(point.body, []).append((k, point.axes, point.place))
    return Full(
        **dynamics,
        J=np.vstack([none, *(point.J for point in moving)]),
        c_contact=np.concatenate([np.zeros(0), *(point.c for point in moving)]),
        pyramid=pyramid(active),
        tasks=tasks,
        limits=np.asarray(limits),
        internal=internal_projector(bodies.values(), len(active)),
        torque_weight=np.asarray(weights.actuators),
        internal_weight=weights.internal,
        normal_range=normal_ranges(active),
    )
