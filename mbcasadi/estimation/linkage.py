"""Joints behind a free base: those with encoders, passive ones, and those that follow by loops.

With the velocities of joints with encoders, m, of passive ones, s, and of followers, d,

    A_d q̇_d = -A_m q̇_m - A_s q̇_s,     q̇ = S (q̇_m, q̇_s),     S = [1; 1; -A_d⁺ (A_m, A_s)],

where loops lose rank, and where they leave followers free, by the shortest q̇_d. Positions of
followers are closed from those of the tick before, `q_d ← q_d ⊕ -A_d⁺ phi`; what is measured stays
as it is. A direction that is weaker than `CLOSING_TOL` is left alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import ProblemError
from mbcasadi.estimation.landmarks import FREE_Q, FREE_V
from mbcasadi.linalg import row_basis, solve_kept
from mbcasadi.system import System, evaluate
from mbcasadi.system.closing import CLOSING_TOL
from mbcasadi.system.coordinates import rate_names

Array = NDArray[np.float64]

AT_ORIGIN = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
"""Pose of the base in which joints are looked at."""

FARTHEST_STEP = 0.1
"""Sizes of coordinates by which followers move in a step at most: from far away they close in a few
ticks, or not at all, and stay finite."""

MOST_STEPS = 50
"""Of closing the pose at the start."""

STILL = 1e-6
"""Relative motion below which a frame rests."""


@dataclass(frozen=True)
class Linkage:
    """The joints behind a free base.

    Attributes:
        system: the robot.
        encoded, passive: names of joints with encoders, and of passive ones.
    """

    system: System
    encoded: tuple[str, ...]
    passive: tuple[str, ...] = ()

    @property
    def chosen(self) -> tuple[str, ...]:
        """Joints whose rates determine those of all others."""
        return (*self.encoded, *self.passive)

    @cached_property
    def _places(self) -> dict[str, tuple[int, int]]:
        """Place of each joint's first coordinate and rate, behind the base."""
        assert self.system.tree is not None  # of a system with a free base
        joints = self.system.tree.joints
        return {joint.name: (joint.qpos - FREE_Q, joint.dof - FREE_V) for joint in joints}

    def places(self, names: Sequence[str]) -> list[int]:
        """Return the coordinates of joints, behind the base."""
        return [self._places[name][0] for name in names]

    def dofs(self, names: Sequence[str]) -> list[int]:
        """Return the rates of joints, behind the base."""
        return [self._places[name][1] for name in names]

    @cached_property
    def followers(self) -> list[int]:
        """Coordinates of joints that follow, behind the base."""
        return _others(self.system.nq - FREE_Q, self.places(self.chosen))

    @cached_property
    def following(self) -> list[int]:
        """Rates of joints that follow, behind the base."""
        return _others(self.system.nv - FREE_V, self.dofs(self.chosen))

    def joined(self, measured: ca.SX, passive: ca.SX, followers: ca.SX) -> ca.SX:
        """Return the coordinates (nq - 7,) of all joints."""
        order = [*self.places(self.chosen), *self.followers]
        return ca.vertcat(measured, passive, followers)[np.argsort(order).tolist()]

    def closed(self, joints: ca.SX, steps: int) -> ca.SX:
        """Return coordinates (nq - 7,) with followers where the loops have them."""
        if not self.following:
            return joints
        pose, free = posed(joints), [FREE_V + k for k in self.following]
        size = ca.DM(self.system.scales.coordinates)[free]
        for _ in range(steps):
            phi = evaluate(self.system.constraint, {"q": pose})
            x = self._shortest(pose, phi)
            x = x * ca.fmin(1, FARTHEST_STEP / ca.fmax(ca.norm_2(x), FARTHEST_STEP / 2))
            step = ca.SX(self.system.nv, 1)
            step[free] = -size * x
            pose = self.system.integrate(pose, ca.densify(step))
        return pose[FREE_Q:]

    def assembled(self, q0: Array) -> Array:
        """Return q0 (nq,) with followers where the loops have them; not checked."""
        if not self.following:
            return q0
        s = ca.SX.sym("q", self.system.nq - FREE_Q)
        step = ca.Function("step", [s], [self.closed(s, 1)], {"cse": True})
        joints = ca.DM(q0[FREE_Q:])
        for _ in range(MOST_STEPS):
            joints = step(joints)
        return np.concatenate([q0[:FREE_Q], np.array(joints).ravel()])

    def motion(self, joints: ca.SX) -> ca.SX:
        """Return S (nv - 6, m + k): rates of all joints by those of the chosen ones."""
        S = ca.SX(self.system.nv - FREE_V, len(self.chosen))
        S[self.dofs(self.chosen), :] = ca.SX.eye(len(self.chosen))
        if self.following:
            pose, columns = posed(joints), [FREE_V + k for k in self.dofs(self.chosen)]
            size = ca.DM(self.system.scales.coordinates)[[FREE_V + k for k in self.following]]
            x = self._shortest(pose, self._rows(pose)[:, columns])
            S[self.following, :] = ca.sparsify(-ca.diag(size) @ x)
        return S

    def by_rates(self, J: ca.SX, joints: ca.SX) -> ca.SX:
        """Return a Jacobian (·, nv - 6) by the rates of the chosen joints, (·, m + k)."""
        return J @ self.motion(joints) if len(self.chosen) < self.system.nv - FREE_V else J

    def before(self, joints: ca.SX, rates: ca.SX, age: ca.SX) -> ca.SX:
        """Return coordinates (nq - 7,) an age, s, ago, by the rates of joints with encoders."""
        if len(self.encoded) == self.system.nq - FREE_Q:
            return joints - age * rates
        back = -age * self.motion(joints)[:, : len(self.encoded)] @ rates
        return self.system.integrate(posed(joints), ca.vertcat(ca.SX(FREE_V, 1), back))[FREE_Q:]

    def _rows(self, pose: ca.SX) -> ca.SX:
        rest = ca.SX(ca.DM.zeros(self.system.nv))
        return evaluate(self.system.loop_jacobian, {"q": pose, "v": rest})

    def _shortest(self, pose: ca.SX, b: ca.SX) -> ca.SX:
        """Return the shortest x with `A_d diag(size) x = b`, for the rows that are kept."""
        free = [FREE_V + k for k in self.following]
        size = ca.DM(self.system.scales.coordinates)[free]
        A = self._rows(pose)[:, free] @ ca.diag(size)
        basis = row_basis(
            A, row_scale=ca.DM(self.system.scales.rows), rank_tol=CLOSING_TOL, pivot=False
        )
        return solve_kept(basis, b)


def posed(joints: ca.SX) -> ca.SX:
    """Return q (nq,) of these joints (nq - 7,), the base at the origin."""
    return ca.vertcat(ca.SX(ca.DM(AT_ORIGIN)), joints)


def _others(count: int, places: Sequence[int]) -> list[int]:
    return [k for k in range(count) if k not in set(places)]


def require_determined(linkage: Linkage, q0: Array, frames: dict[str, Array]) -> tuple[str, ...]:
    """Return the coordinates that nothing determines, and nothing needs.

    Args:
        linkage: the joints.
        q0: (nq,) pose of `Linkage.assembled`.
        frames: Jacobian (·, nv - 6) of each frame that is needed, by its name.

    Raises:
        ProblemError: a frame is moved by a joint that is neither measured nor passive, nor follows;
            a passive joint follows from the measured ones; loops hold the base, or do not close.
    """
    if not linkage.following and not linkage.passive:
        return ()
    system, scales = linkage.system, linkage.system.scales
    size = np.ravel(scales.coordinates)[FREE_V:]
    pose = np.concatenate([AT_ORIGIN, q0[FREE_Q:]])
    A = np.array(evaluate(system.loop_jacobian, {"q": pose, "v": np.zeros(system.nv)}))
    A = A / np.where(scales.rows > 0, scales.rows, 1.0).reshape(-1, 1)
    if np.abs(A[:, :FREE_V]).max(initial=0.0) > CLOSING_TOL:
        raise ProblemError(
            f"'{system.name}' has constraints that hold its base; expected loops among its joints, "
            "or an encoder for each of them"
        )
    A, names = A[:, FREE_V:] * size, rate_names(system)[FREE_V:]
    unmeasured = _others(len(size), linkage.dofs(linkage.encoded))
    Z = _null(A, unmeasured)
    own = linkage.dofs(linkage.passive)
    if own and np.linalg.matrix_rank(Z[own], tol=CLOSING_TOL) < len(own):
        raise ProblemError(
            f"passive joints {', '.join(linkage.passive)}: loops determine them, or some by "
            "others; expected those that stay free where joints with encoders rest"
        )
    Z = _null(A, linkage.following)
    for name, J in frames.items():
        moved = np.abs(J * size @ Z).max(initial=0.0)
        if moved > STILL * max(1.0, np.abs(J * size).max(initial=0.0)):
            free = [names[k] for k in linkage.following if np.abs(Z[k]).max() > CLOSING_TOL]
            raise ProblemError(
                f"'{system.name}' has joints without an encoder: "
                f"{', '.join(repr(each) for each in free[:4])}; expected an encoder for each joint "
                f"that loops leave free and that moves '{name}', or a PassiveJoint"
            )
    gap = ca.evalf(linkage.closed(ca.SX(ca.DM(q0[FREE_Q:])), 1)) - q0[FREE_Q:]
    if float(ca.norm_inf(gap)) > CLOSING_TOL:
        raise ProblemError(
            f"q0 of '{system.name}': loops do not close with these joints with encoders; expected "
            "a pose, as of System.assemble"
        )
    rest = np.abs(Z).max(axis=1, initial=0.0) if Z.size else np.zeros(len(size))
    return tuple(name for name, move in zip(names, rest, strict=True) if move > 0.5)


def _null(A: Array, columns: Sequence[int]) -> Array:
    """Return orthonormal motions (n, k) of these coordinates that rows A (m, n) leave free."""
    Z = np.zeros((A.shape[1], 0))
    if columns:
        _, s, Vt = np.linalg.svd(A[:, columns])
        rank = int(np.count_nonzero(s > CLOSING_TOL))
        Z = np.zeros((A.shape[1], len(columns) - rank))
        Z[columns] = Vt[rank:].T
    return Z
