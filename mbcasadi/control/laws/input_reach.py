"""Input reach: which motions the actuators can drive at a pose  [A05, eq. 64].

This is a property of the forces at one pose. Whether the modes of the linear model can be
controlled is another question: see `controllability` of the linear systems.

`null(A) ∩ range(B)⊥ = {0}`: a motion v that the rows allow and on which no actuator does work,
`Bᵀ v = 0`, cannot be driven. (The paper writes `N ∩ B⊥ ⊆ N⊥ ∩ B⊥`; the right side meets N in zero
only, so it is the same.)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import Array
from mbcasadi.control.law_interface.pivots import leading_rows
from mbcasadi.control.laws.poses import joint_rates, motions_at
from mbcasadi.errors import ShapeError
from mbcasadi.shapes import column, real_array
from mbcasadi.short_text import summarised
from mbcasadi.system import System, evaluate
from mbcasadi.system.coordinates import rates
from mbcasadi.system.parametric import at_model_values
from mbcasadi.system.sizes import control_sizes

UNDRIVEN = 1e-6
"""Cosine of the angle between a motion and the actuators' forces below which it is not driven."""

WEAK = 0.05
"""Cosine below which the report calls a motion weakly driven: it needs 20 times the force."""

ALIKE = 6
"""Digits in which two rates have to differ for the report to name the larger first: among equal
ones, whose order rounding would decide, the joint that the model names first leads."""

SHOWN = 0.1
"""Share of a motion's largest rate below which the report leaves a joint out."""


@summarised
@dataclass(frozen=True)
class InputReach:
    """The motions of a mechanism at one pose, and those that no actuator drives.

    Attributes:
        name: of the system.
        joints: (nv,) names of the rates.
        motions: (nv, k) basis of the velocities that the rows allow, joint space.
        undriven: (nv, j) basis of those on which no actuator does work, joint space.
        weakest: (nv,) driven motion with the least `margin`; zero where there is none.
        margin: cosine of the angle between the weakest motion and the actuators' forces, in the
            metric: one where they push along it, zero where they cannot; zero if some motion is
            not driven.
    """

    name: str
    joints: tuple[str, ...]
    motions: Array
    undriven: Array
    weakest: Array
    margin: float

    @property
    def controllable(self) -> bool:
        """Whether every motion is driven: condition (64)."""
        return not self.undriven.size

    @property
    def in_words(self) -> str:
        """The finding in a few sentences."""
        n_total, n_undriven = self.motions.shape[1], self.undriven.shape[1]
        if not n_total:
            return f"'{self.name}' cannot move at this pose."
        if n_undriven:
            n_driven = n_total - n_undriven
            lines = [f"{n_driven} of the {_motions(n_total)} of '{self.name}' can be driven here."]
            lines += [
                f"Motion along {self._joint_text(column)} cannot be: no actuator does work on it."
                for column in self.undriven.T
            ]
            lines.append(
                "Only the forces at this pose are meant: beside it the motion may be driven. Here "
                "one actuator more for each, on a joint named, would suffice."
            )
            return " ".join(lines)
        subject = "The only motion" if n_total == 1 else f"Each of the {n_total} motions"
        text = f"{subject} of '{self.name}' can be driven here (margin {self.margin:.3g})."
        if self.margin < WEAK:
            text += f" Motion along {self._joint_text(self.weakest)} is only weakly driven."
        return text

    def _joint_text(self, motion: Array) -> str:
        size = np.abs(motion)
        share = size / size.max()
        sorted_joints = np.argsort(-share.round(ALIKE), kind="stable")
        order = [int(i) for i in sorted_joints if share[i] > SHOWN]
        sign = np.sign(motion[order[0]])
        shares = [f"{self.joints[i]} ({sign * motion[i]:+.2f})" for i in order]
        return ", ".join(shares)


@summarised
@dataclass(frozen=True)
class WorkspaceInputReach:
    """Condition (64) over a sample of poses.

    Attributes:
        poses: (n, nq).
        motions: (n,) how many motions there are at each.
        driven: (n,) how many of them are driven.
        margins: (n,) of the weakest motion, zero where one is not driven.
        worst: the report at the pose with the least margin.
    """

    poses: Array
    motions: NDArray[np.int64]
    driven: NDArray[np.int64]
    margins: Array
    worst: InputReach

    @property
    def share(self) -> float:
        """Share of the poses where every motion is driven."""
        return float(np.mean(self.driven == self.motions))

    @property
    def in_words(self) -> str:
        """The finding in a few sentences."""
        n_reached, n_total = int(np.sum(self.driven == self.motions)), len(self.motions)
        k = int(np.argmin(self.margins))
        pose = ", ".join(f"{value:.3g}" for value in self.poses[k])
        text = (
            f"Every motion is driven at {n_reached} of {n_total} poses; the margin is "
            f"{np.min(self.margins):.3g} at worst and {np.median(self.margins):.3g} in the median. "
        )
        return text + f"Worst pose, q = ({pose}): {self.worst.in_words}"


@checked
@at_model_values
def input_reach(
    system: System,
    q: ArrayLike,
    *,
    metric: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    v: ArrayLike | None = None,
    t: float = 0.0,
) -> InputReach:
    """Return which motions the actuators drive at a pose  [A05, eq. 64].

    With orthonormal bases Z of null(A) and X of range(B), the singular values of `Xᵀ Z` are the
    cosines between motions and actuator forces: one along the forces, zero across them. Whether
    they are zero does not depend on the metric; how large they are does. The default metric comes
    from the model, so no unit has an effect.

    Args:
        system: the mechanism.
        q: (nq,) closed pose.
        metric: (nv, nv) W of velocities; forces are measured by its inverse. That of
            `law_interface/weights.py` by default, `np.eye(nv)` for the Euclidean one.
        mask: (nc,) rows that are on; all by default.
        v: (nv,) velocity, for rows `psi(q, v, t)` that are nonlinear in it; rest by default.
        t: s, for rows that move.
    """
    pose = column("q", q, system.nq)
    Z = motions_at(system, pose, metric=metric, mask=mask, v=v, t=t)
    to_joint = joint_rates(system, metric)
    at = {"q": pose, "v": np.zeros(system.nv) if v is None else column("v", v, system.nv)}
    B = np.asarray(evaluate(system.actuation, at).full())
    X = _range(to_joint @ B / control_sizes(system))
    _, size, Vt = np.linalg.svd(X.T @ Z)
    cosines = np.zeros(Z.shape[1])
    cosines[: len(size)] = size
    directions = Z @ Vt.T
    is_undriven = cosines <= UNDRIVEN
    driven = np.flatnonzero(~is_undriven)
    weakest = directions[:, driven[-1]] if driven.size else np.zeros(system.nv)
    margin = float(cosines.min(initial=1.0)) if not is_undriven.any() else 0.0
    return InputReach(
        system.name,
        rates(system).components,
        to_joint @ Z,
        _unit_columns(to_joint @ _readable(directions[:, is_undriven])),
        _unit_columns(to_joint @ weakest),
        margin,
    )


@checked
@at_model_values
def workspace_input_reach(
    system: System,
    poses: ArrayLike,
    *,
    metric: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    v: ArrayLike | None = None,
    t: float = 0.0,
) -> WorkspaceInputReach:
    """Return condition (64) at each of many poses, as `sampled_poses` gives them.

    Args:
        system: the mechanism.
        poses: (n, nq) closed poses, one at least.
        metric, mask, v, t: as in `input_reach`.

    Raises:
        ShapeError: not (n, nq), or no pose.
    """
    poses_2d = np.atleast_2d(real_array("poses", poses))
    if poses_2d.ndim != 2 or poses_2d.shape[1] != system.nq or not len(poses_2d):
        raise ShapeError(f"poses has shape {poses_2d.shape}, expected (n, {system.nq}) = (n, nq)")
    reports = [input_reach(system, q, metric=metric, mask=mask, v=v, t=t) for q in poses_2d]
    motions = np.array([report.motions.shape[1] for report in reports])
    driven = motions - np.array([report.undriven.shape[1] for report in reports])
    margins = np.array([report.margin for report in reports])
    return WorkspaceInputReach(poses_2d, motions, driven, margins, reports[int(np.argmin(margins))])


def _motions(count: int) -> str:
    return "one motion" if count == 1 else f"{count} motions"


def _readable(basis: Array) -> Array:
    """Return a basis of the same space (nv, j) whose motions have few joints each."""
    count = basis.shape[1]
    if not count:
        return basis
    pivots = leading_rows(basis)
    return np.asarray(np.linalg.solve(basis[pivots].T, basis.T).T)


def _unit_columns(X: Array) -> Array:
    """Return the columns with the length one, or zero."""
    return np.asarray(X / np.maximum(np.linalg.norm(X, axis=0), np.finfo(float).tiny))


def _range(B: Array) -> Array:
    """Return orthonormal columns that span range(B)."""
    U, size, _ = np.linalg.svd(B, full_matrices=False)
    return np.asarray(U[:, size > UNDRIVEN * size.max(initial=0.0)])
