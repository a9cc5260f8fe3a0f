"""Points of one rigid body that are held to the world: at most six independent rows, known before.

The rows of k points of a body are a constant map of the body's motion: with arms r_i in its axes
from the mean of the points, signs s_i = ±1 (which side of the constraint the body is) and
rotation R,

    A_i = s_i (J_v - R [r_i]× Rᵀ J_ω).

Since the arms add up to zero, the parts of J_v and J_ω are orthogonal, and with the singular values
of the constant turning part, `(-s_i [r_i]×) = Q_ω S Vᵀ`,

    A = Q A_r,   A_r = [√k J_v; S Vᵀ Rᵀ J_ω],   Q_i = [s_i I/√k, R Q_ω,i],   Qᵀ Q = I.

So `A⁺ = A_r⁺ Qᵀ`: `A_r a + Qᵀ c = 0` holds in the same least-squares sense, and the multipliers of
least norm are `Q lam_r`. Three points or more give six rows, two give five, whatever the pose.

Rows that a mask S switches one by one are factored as the Function runs, `S E = Q U` with the
(3k, 6) map `E_i = s_i [I, -[R r_i]×]`: `A_r = U [J_v; J_ω]` has six rows, zero ones among them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.constraints.pairs import anchor_on_link, gap_jacobian, pair_of
from mbcasadi.description import Connect, Equality, RigidTree
from mbcasadi.linalg import row_basis
from mbcasadi.model.chain import WORLD, Chain, chain_of

Array = NDArray[np.float64]

RANK_TOL = 1e-9
"""Share of the largest arm below which a singular value of the constant turning part is zero."""


@dataclass(frozen=True)
class PointsOfBody:
    """Connections of one body to the world.

    Attributes:
        rows: (3k,) places of their rows among those of all constraints.
        mean: a connection of the mean of the points.
        signs: (k,) one where the body is the first one of the connection, else minus one.
        arms: (k, 3) points in the axes of the link, from their mean, m.
        turning: (3k, r) orthonormal `Q_ω`.
        of_turn: (r, 3) `S Vᵀ`.
    """

    rows: tuple[int, ...]
    mean: Connect
    signs: Array
    arms: Array
    turning: Array
    of_turn: Array

    @property
    def size(self) -> int:
        """Number of independent rows, where all points are switched on."""
        return 3 + len(self.of_turn)

    @property
    def of_rate(self) -> Array:
        """(r, 3, 3) symmetric K_j: `Σ Q_ω,iᵀ s_i ω × (ω × r_i)` are `ωᵀ K_j ω`, body axes."""
        parts = self.turning.reshape(self.signs.size, 3, -1)
        B = np.einsum("i,iaj,ib->jab", self.signs, parts, self.arms)
        trace = np.einsum("jaa->j", B)[:, None, None]
        return np.asarray((B + B.transpose(0, 2, 1)) / 2 - trace * np.eye(3))


def points_of_bodies(
    tree: RigidTree, equalities: Sequence[Equality], least: int = 2
) -> tuple[PointsOfBody, ...]:
    """Return the bodies that `least` connections or more hold to the world."""
    chain = chain_of(tree)
    places = np.cumsum([0, *(equality.size for equality in equalities)])
    held: dict[int, list[tuple[int, int, Array, int]]] = {}
    for equality, first in zip(equalities, places, strict=False):
        if not isinstance(equality, Connect):
            continue
        links = chain.body_link[equality.body1], chain.body_link[equality.body2]
        if links[0] == WORLD and links[1] != WORLD:
            held.setdefault(links[1], []).append((int(first), equality.body2, equality.anchor2, -1))
        elif links[1] == WORLD and links[0] != WORLD:
            held.setdefault(links[0], []).append((int(first), equality.body1, equality.anchor1, 1))
    return tuple(_of_body(chain, points) for points in held.values() if len(points) >= least)


def _of_body(chain: Chain, points: Sequence[tuple[int, int, Array, int]]) -> PointsOfBody:
    on_link = np.array([anchor_on_link(chain, body, anchor) for _, body, anchor, _ in points])
    mean = on_link.mean(axis=0)
    signs = np.array([float(sign) for *_, sign in points])
    arms = on_link - mean
    skew = np.array([[[0, z, -y], [-z, 0, x], [y, -x, 0]] for x, y, z in arms])  # -[r]×
    turning = (signs[:, None, None] * skew).reshape(-1, 3)
    Q, S, Vt = np.linalg.svd(turning, full_matrices=False)
    r = int(np.sum(RANK_TOL * np.abs(on_link).max() < S))
    body = points[0][1]
    pose = chain.body_pose[body]
    rows = tuple(first + axis for first, *_ in points for axis in range(3))
    held = Connect("mean", body, 0, pose.R.T @ (mean - pose.p), np.zeros(3))
    return PointsOfBody(rows, held, signs, arms, Q[:, :r], S[:r, None] * Vt[:r])


def independent_rows(
    tree: RigidTree,
    groups: Sequence[PointsOfBody],
    A: ca.SX,
    q: ca.SX,
    mask: ca.SX | None = None,
) -> tuple[ca.SX, ca.SX]:
    """Return `A_r` (m, nv) and `Q` (nc, m), `A = Q A_r`; rows of no group come first, as they are.

    Args:
        tree: the mechanism.
        groups: of `points_of_bodies`.
        A: (nc, nv) rows of all constraints, zero where they are switched off.
        q: (nq, 1) configuration.
        mask: (nc, 1) one for each row that is switched on, else zero; None where all are.
    """
    nc = A.shape[0]
    others = other_rows(groups, nc)
    rows, maps = [A[others, :]], [ca.SX.eye(nc)[:, others]]
    for group in groups:
        places = list(group.rows)
        on = None if mask is None else mask[places]
        J, Q = _independent_rows_of(tree, group, q, on)
        of_all = ca.SX(nc, Q.shape[1])
        of_all[places, :] = Q
        rows.append(J)
        maps.append(of_all)
    return ca.sparsify(ca.vertcat(*rows)), ca.sparsify(ca.horzcat(*maps))


def other_rows(groups: Sequence[PointsOfBody], nc: int) -> list[int]:
    """Return the places of the rows that belong to no group."""
    grouped = {row for group in groups for row in group.rows}
    return [i for i in range(nc) if i not in grouped]


def _independent_rows_of(
    tree: RigidTree, group: PointsOfBody, q: ca.SX, on: ca.SX | None
) -> tuple[ca.SX, ca.SX]:
    """Return `A_r` and Q of one body."""
    pair = pair_of(tree, group.mean, q)
    J_v, J_w = gap_jacobian(pair, relative=True)
    R = ca.horzcat(*(ca.vertcat(*column) for column in pair.poses[pair.links[0]].columns))
    if on is not None:
        Q, U = _switched(group, R, on)
        return U @ ca.vertcat(J_v, J_w), Q
    k = group.signs.size
    rows = ca.vertcat(np.sqrt(k) * J_v, ca.SX(ca.DM(group.of_turn)) @ (R.T @ J_w))
    moving = [ca.SX.eye(3) * (sign / np.sqrt(k)) for sign in group.signs]
    turning = [R @ ca.DM(part) for part in np.split(group.turning, k)]
    return rows, ca.horzcat(ca.vertcat(*moving), ca.vertcat(*turning))


def _switched(group: PointsOfBody, R: ca.SX, on: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return Q and U with `S E = Q U`, for rows that are switched one by one."""
    parts = [
        sign * ca.horzcat(ca.SX.eye(3), -ca.skew(R @ ca.DM(arm)))
        for sign, arm in zip(group.signs, group.arms, strict=True)
    ]
    E = ca.repmat(on, 1, 6) * ca.vertcat(*parts)
    k, size = group.signs.size, np.linalg.norm(group.arms)
    usual = ca.DM([np.sqrt(k)] * 3 + [size or 1.0] * 3)
    basis = row_basis(E.T, row_scale=usual, rank_tol=RANK_TOL)
    return ca.repmat(on, 1, basis.V.shape[1]) * basis.V, basis.R  # exact zeros where off
