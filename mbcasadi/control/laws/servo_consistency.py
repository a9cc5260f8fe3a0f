"""Consistency and controllability of servo constraints, as a report  [L15].

Three questions at one state, each with the passive constraints included:

- (27): is there an acceleration that keeps servo rows and passive constraints alike?
- (34): do actuators reach every acceleration of the servo rows that the mechanism can have?
- (33): is there a control for the acceleration that is required now?

L15 states (27) for the servo rows alone and (34) as `rank >= 1`, which holds as soon as one row
can be driven: necessary, not sufficient. Here the rank is compared with that of the motion.

Whether a response `A_s G B` is zero cannot be decided from its entries: where no control has an
effect they are rounding errors, of any rank. The matrices that it is made of decide it. Each
coordinate is measured in `g_j = √(M̄⁻¹)_jj`, so that kinetic energy has one unit, and each row and
control by its own length in these:

    r_i = ‖A_s,i g‖,   s_j = ‖g B_j‖,   K = r (Â Ĝ B̂) s,   Â, Ĝ, B̂ of the size one

A singular value of `Â Ĝ B̂` below a tolerance is zero, in all units of the model.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import LawInputs
from mbcasadi.control.law_interface.mechanism_at_state import Mechanism
from mbcasadi.control.law_interface.options import LAW_RANK_TOL
from mbcasadi.control.laws.servo import servo_terms
from mbcasadi.control.tasks.servo_rows import BAUMGARTE_ADVICE, SERVO_ADVICE, SIGNALS, ServoRows
from mbcasadi.description import Baumgarte
from mbcasadi.errors import ProblemError
from mbcasadi.linalg import tree_solve
from mbcasadi.shapes import column, real_array, require_kind, require_name, require_positive
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.system.coordinates import rates

Array = NDArray[np.float64]

CONSISTENCY_TOL = 1e-6  # of what they are made of: responses and accelerations that count as zero
NAMED = 0.1  # share of the largest entry from which a row or joint is named


@summarised
@dataclass(frozen=True)
class ServoReport:
    """Which servo rows can be enforced at one state.

    Attributes:
        rank_rows: independent servo rows, `rank A_s`.
        rank_motion: those that the passive constraints leave free, `rank A_s G`.
        rank_control: those that the actuators reach, `rank A_s G B`  [L15, eq. 34].
        contradiction: (k,) part of `b_s` that no admissible acceleration gives  [L15, eq. 27].
        out_of_reach: (k,) part of `b_s - A_s a_0` that no control gives  [L15, eq. 33].
        sentences: the same in words.
    """

    rank_rows: int
    rank_motion: int
    rank_control: int
    contradiction: Array
    out_of_reach: Array
    sentences: tuple[str, ...]

    @property
    def consistent(self) -> bool:
        """Whether servo rows and passive constraints agree now  [L15, eq. 27]."""
        return not self.contradiction.any()

    @property
    def controllable(self) -> bool:
        """Whether actuators reach all that the mechanism can do in the rows  [L15, eq. 34]."""
        return self.rank_control == self.rank_motion >= 1

    @property
    def attainable(self) -> bool:
        """Whether a control gives the acceleration that is required now  [L15, eq. 33]."""
        return not self.out_of_reach.any()

    @property
    def in_words(self) -> str:
        """One paragraph."""
        return " ".join(self.sentences)


@dataclass(frozen=True)
class ServoResponse:
    """Servo rows, motion and actuation in scaled coordinates.

    Attributes:
        rows: (k, nv) Â, rows of the length one, or zero.
        motion: (k, nv) `Â Ĝ`.
        control: (k, nu) `Â Ĝ B̂`.
        G: (nv, nv) Ĝ.
        scale: (k,) r, one for a row that is zero.
        tol: singular value that counts as zero.
    """

    rows: Array
    motion: Array
    control: Array
    G: Array
    scale: Array
    tol: float

    def rank(self, X: Array) -> int:
        """Return the rank of one of the scaled matrices."""
        return int(np.sum(np.linalg.svd(X, compute_uv=False) > self.tol))

    def range(self, X: Array) -> Array:
        """Return orthonormal columns that span the range of a scaled matrix."""
        U, sizes, _ = np.linalg.svd(X, full_matrices=False)
        return np.asarray(U[:, sizes > self.tol])

    def beyond(self, large: Array, small: Array) -> list[Array]:
        """Return orthonormal columns of range(large) that are orthogonal to range(small)."""
        large_basis, small_basis = self.range(large), self.range(small)
        remainder = large_basis - small_basis @ (small_basis.T @ large_basis)
        U, sizes, _ = np.linalg.svd(remainder, full_matrices=False)
        return [U[:, i] for i in range(sizes.size) if sizes[i] > np.sqrt(self.tol)]

    def unreachable_part(self, X: Array, b: Array, size: Array) -> Array:
        """Return the part of b (k,) outside range(X), exactly zero where it is rounding.

        Args:
            X: (k, n) `motion` or `control`.
            b: (k,) in the rows' own units; the part is the least one in these.
            size: (k,) of the terms that b is the sum of.
        """
        basis = np.linalg.qr(self.scale[:, None] * self.range(X))[0]
        remainder = b - basis @ (basis.T @ b)
        rounding = self.tol * self.scale * np.max(size / self.scale, initial=0.0)
        return remainder if np.any(np.abs(remainder) > rounding) else np.zeros_like(b)


@checked
def servo_report(
    system: System,
    servo: ServoRows,
    q: ArrayLike,
    v: ArrayLike | None = None,
    *,
    signals: Mapping[str, ArrayLike] | None = None,
    baumgarte: Baumgarte | None = None,
    rows: ArrayLike | None = None,
    rank_tol: float = CONSISTENCY_TOL,
) -> ServoReport:
    """Return which rows can be enforced at the state (q, v), and the rows and joints that fail.

    Args:
        system, servo: as in `servo_control`.
        q, v: (nq,), (nv,) state; at rest by default.
        signals: (ny,) moving quantities, "y", and their rates, "ydot" and "yddot"; zero by default.
        baumgarte: stabilisation of the servo rows; off the manifold (27) depends on it.
        rows: (nc,) one for each passive row that is on, zero for others; all by default.
        rank_tol: size that counts as zero, relative to the rows, inertia and actuation that a
            response is made of.

    Raises:
        ProblemError: M is not positive definite on the free motions at q.
        ShapeError: a vector of a wrong size.
        UnknownNameError: no such signal.
    """
    require_kind("servo", servo, ServoRows, SERVO_ADVICE)
    if baumgarte is not None:
        require_kind("baumgarte", baumgarte, Baumgarte, BAUMGARTE_ADVICE)
    require_positive(rank_tol=rank_tol)
    given, ny, nc = signals or {}, len(servo.signals), system.nc
    for name in given:
        require_name("signal", name, SIGNALS)
    arguments = [
        column("q", q, system.nq),
        _vector_or_default("v", v, system.nv, 0.0),
        *(_vector_or_default(name, given.get(name), ny, 0.0) for name in SIGNALS),
        _vector_or_default("rows", rows, nc, 1.0),
    ]
    A_s, b_s, a_0, G, B, inverse = (
        np.array(x) for x in _terms_fun(system, servo, baumgarte).call(arguments)
    )
    if not np.all(np.isfinite(inverse)):
        raise ProblemError(
            f"the M of '{system.name}' is not positive definite on the free motions at q; expected "
            "forces to determine the acceleration"
        )
    response = servo_response(A_s, G, B, inverse, rank_tol)
    wanted, size = (b_s - A_s @ a_0).ravel(), (np.abs(b_s) + np.abs(A_s) @ np.abs(a_0)).ravel()
    contradiction = response.unreachable_part(response.motion, wanted, size)
    unreachable = response.unreachable_part(response.control, wanted, size)
    rank_rows, rank_motion, rank_control = (
        response.rank(X) for X in (response.rows, response.motion, response.control)
    )
    sentences = [_about_rows(servo, response, rank_rows, rank_motion)]
    sentences.append(_about_contradiction(servo, contradiction))
    sentences += _about_actuators(system, response, rank_motion, rank_control)
    for direction in response.beyond(response.motion, response.control) if rank_motion else []:
        moving = response.G @ response.rows.T @ direction
        joints = _dominant_names(rates(system).components, moving)
        sentences.append(
            f"No actuator accelerates {_direction_text(servo.names, direction)} (34); it is a "
            f"motion of {joints}."
        )
    sentences.append(_about_now(servo, unreachable))
    return ServoReport(
        rank_rows, rank_motion, rank_control, contradiction, unreachable, tuple(sentences)
    )


def _terms_fun(system: System, servo: ServoRows, baumgarte: Baumgarte | None) -> ca.Function:
    """Return (q, v, y, ydot, yddot, rows) → (A_s, b_s, a_0, G, B, M̄⁻¹), weighted."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    y, ydot, yddot = (ca.SX.sym(name, len(servo.signals)) for name in ("y", "ydot", "yddot"))
    rows = ca.SX.sym("rows", system.nc)
    at = LawInputs(q=q, v=v, ref={}, z={}, rows=rows, f_c=ca.SX.zeros(system.nv))
    masked = system if system.mask is not None else system.with_mask()
    m = Mechanism.measured(masked, at, LAW_RANK_TOL)
    task = servo_terms(m, servo, (y, ydot, yddot), baumgarte=baumgarte)
    eye = ca.SX.eye(system.nv)
    inverse = tree_solve(m.M_bar_root, eye)
    definite = ca.if_else(m.has_unique_motion, 1, np.nan)
    outputs = [task.A_s, task.b_s, task.a_0, m.response(eye), m.B, definite * inverse]
    return ca.Function("servo_terms", [q, v, y, ydot, yddot, rows], outputs)


def _vector_or_default(name: str, value: ArrayLike | None, size: int, default: float) -> Array:
    entries = np.full(size, default) if value is None else real_array(name, value)
    return column(name, np.full(size, default) if entries.size == 0 else entries, size)


def _dominant_names(names: tuple[str, ...], weights: Array) -> str:
    """Return the names that carry the weights, in their order."""
    large = np.abs(weights) >= NAMED * np.abs(weights).max(initial=0.0)
    return ", ".join(name for name, is_large in zip(names, large, strict=True) if is_large)


def _direction_text(names: tuple[str, ...], weights: Array) -> str:
    """Return a direction in words: `x`, or `0.71 x - 0.71 z`."""
    weights = weights / np.linalg.norm(weights)
    weights = weights * np.sign(weights[np.argmax(np.abs(weights))])
    terms = [(n, w) for n, w in zip(names, weights, strict=True) if abs(w) >= NAMED]
    if len(terms) == 1:
        return terms[0][0]
    return " ".join(f"{w:+.2f} {n}" for n, w in terms).removeprefix("+").replace(" +", " + ")


def _about_rows(servo: ServoRows, response: ServoResponse, rank: int, rank_motion: int) -> str:
    text = f"Servo rows: {servo.count}, independent: {rank}"
    if rank_motion == rank:
        return text + "; the passive constraints leave all of them free."
    fixed = response.beyond(response.rows, response.motion)
    directions = "; ".join(_direction_text(servo.names, direction) for direction in fixed)
    return f"{text}; the passive constraints decide {directions}, and leave {rank_motion} free."


def _about_contradiction(servo: ServoRows, contradiction: Array) -> str:
    if not contradiction.any():
        return "No row contradicts another or a passive constraint (27)."
    return (
        f"The desired acceleration of {_dominant_names(servo.names, contradiction)} contradicts "
        f"another row or a passive constraint, by {np.abs(contradiction).max():.3g} (27): "
        "change the reference or drop a row."
    )


def _about_actuators(
    system: System, response: ServoResponse, rank_motion: int, rank_control: int
) -> list[str]:
    if rank_motion == 0:
        return ["They do not depend on any motion that is left; no control is of use."]
    strength = np.abs(response.control).max(axis=0, initial=0.0)
    names = zip(system.actuator_names, strength, strict=True)
    idle = [name for name, size in names if size <= response.tol]
    idle_sentence = [f"They do not depend on {', '.join(idle)}."] if idle else []
    if rank_control < rank_motion:
        return [f"Actuators reach {rank_control} of {rank_motion}.", *idle_sentence]
    surplus = system.nu - rank_control
    surplus_text = f", with {surplus} to spare" if surplus else ""
    return [f"Actuators reach all {rank_motion} (34){surplus_text}.", *idle_sentence]


def _about_now(servo: ServoRows, unreachable: Array) -> str:
    if not unreachable.any():
        return "A control gives the desired acceleration now (33)."
    names = _dominant_names(servo.names, unreachable)
    return f"No control gives the desired acceleration of {names} now (33)."


def servo_response(A_s: Array, G: Array, B: Array, inverse: Array, tol: float) -> ServoResponse:
    """Return the scaled response.

    Args:
        A_s: (k, nv) servo rows.
        G: (nv, nv) `(P M P)⁺`.
        B: (nv, nu) actuation.
        inverse: (nv, nv) `M̄⁻¹`, G with `1/μ` across the constraints: never pure rounding.
        tol: singular value that counts as zero.
    """
    unit = np.sqrt(np.abs(inverse.diagonal()))
    rows, actuation, G_hat = A_s * unit, unit[:, None] * B, G / np.outer(unit, unit)
    scale, strength = np.linalg.norm(rows, axis=1), np.linalg.norm(actuation, axis=0)
    scale, strength = (np.where(length > 0, length, 1.0) for length in (scale, strength))
    rows = rows / scale[:, None]
    motion = rows @ G_hat
    return ServoResponse(rows, motion, motion @ (actuation / strength), G_hat, scale, tol)
