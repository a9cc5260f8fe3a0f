"""The motion that servo constraints require, and the response of their rows to the control.

    a(u) = a_0 + G B u,    G = M⁻¹ - M⁻¹Aᵀ (A M⁻¹ Aᵀ)⁺ A M⁻¹ = (P M P)⁺

is the motion within the passive constraints, their reaction to the control included. The printed
law (14, 16, 35) of L15 takes the reaction from Q alone, and then the loops open.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi.constraints import stabilised_bias
from mbcasadi.control.law_interface.mechanism_at_state import Mechanism
from mbcasadi.control.law_interface.verdicts import ATTAIN_TOL
from mbcasadi.control.tasks.servo_rows import ServoRows
from mbcasadi.description import Baumgarte
from mbcasadi.dynamics.terms import rates_of
from mbcasadi.linalg import complete_factor


class ServoTerms(NamedTuple):
    """`A_s a = b_s` for the motion `a = a_0 + GB u`, in the mechanism's weighted coordinates.

    Fields: `A_s` (k, nv), `b_s` (k, 1) stabilised; `a_0` (nv, 1) the constrained acceleration at
    u = 0, non-ideal forces included; `GB` (nv, nu) the response of the acceleration to controls
    of the size one in their metric; `error` (k, 1) how far the rows are violated, in their own
    units; `sizes` (nv, 1) those of the rates, which make rotations and translations comparable.
    """

    A_s: ca.SX
    b_s: ca.SX
    a_0: ca.SX
    GB: ca.SX
    error: ca.SX
    sizes: ca.DM

    def scale_of(self, response: ca.SX) -> ca.SX:
        """Return (k, 1) the scales of the rows of `A_s response` for a drop rule."""
        length = ca.sqrt(ca.sum2((self.A_s @ ca.diag(self.sizes)) ** 2))
        return ca.densify(length * ca.norm_fro(ca.diag(1 / self.sizes) @ response))

    @property
    def K(self) -> ca.SX:
        """(k, nu) response of the servo rows, `A_s G B`."""
        return self.A_s @ self.GB

    @property
    def w(self) -> ca.SX:
        """(k, 1) acceleration that the control must add, `b_s - A_s a_0`."""
        return self.b_s - self.A_s @ self.a_0

    def is_attained(self, u: ca.SX) -> ca.SX:
        """Return whether a control gives each row, to `ATTAIN_TOL` of what the row is a sum of."""
        terms = ca.fabs(self.b_s) + ca.fabs(self.A_s) @ ca.fabs(self.a_0)
        terms = terms + ca.fabs(self.K) @ ca.fabs(u)
        met = ca.fabs(self.K @ u - self.w) <= ATTAIN_TOL * terms
        return ca.mmin(ca.densify(met))


def servo_terms(
    mechanism: Mechanism,
    servo: ServoRows,
    signals: tuple[ca.SX, ca.SX, ca.SX],
    *,
    on: ca.SX | None = None,
    baumgarte: Baumgarte | None = None,
    f_nonideal: ca.Function | None = None,
) -> ServoTerms:
    """Return the servo rows with the acceleration that they require  [L15, eq. 22-26].

    `b_s = -(c_s + 2 α psi + β² phi)`. A non-ideal force C of the constraints enters as `G C`: the
    part `W (I - B⁺B) W⁻¹ C` of [L15, eq. 12] is what moves the mechanism.

    Args:
        mechanism: at the present state.
        servo: rows.
        signals: (y, ydot, yddot).
        on: (k, 1) one for each row that is kept, zero for others.
        baumgarte: stabilisation of the servo rows.
        f_nonideal: (q, v) → (C): (nv, 1).
    """
    m, state = mechanism, (mechanism.at.q, mechanism.at.v)
    form = servo.at(*state, *signals)
    on = ca.SX.ones(servo.count) if on is None else on
    c = form.c
    if baumgarte is not None:
        c = stabilised_bias(c, form.psi, form.phi, *rates_of(baumgarte, servo.count))
    applied = m.f_0 if f_nonideal is None else m.f_0 + m.weighted_force(f_nonideal(*state))
    error = ca.vertcat(form.phi[: servo.holonomic], form.psi[servo.holonomic :])
    return ServoTerms(
        A_s=m.weighted_rows(ca.SX(ca.diag(on) @ form.A)),
        b_s=-on * c,
        a_0=m.acceleration(applied),
        GB=m.response(m.unit_actuation),
        error=on * error,
        sizes=m.force_sizes,
    )


def least_norm_control(task: ServoTerms, s: ca.SX, rank_tol: float) -> ca.SX:
    """Return `u = K⁺ w + (I - K⁺ K) s`, `K = A_s G B`  [L15, eq. 35, corrected].

    With s = 0 no control that keeps the servo rows as well is smaller. u and s (nu, 1) are those
    in the metric of controls.
    """
    scale = task.scale_of(task.GB)
    factor = complete_factor(task.K, row_scale=scale, rank_tol=rank_tol)
    return factor.pinv_times(task.w) + s - factor.basis.V @ (factor.basis.V.T @ s)


def figures_control(task: ServoTerms, MinvB: ca.SX, s: ca.SX, rank_tol: float) -> ca.SX:
    """Return u of `u = F⁺ (b_s - A_s (a(u) - M⁻¹ B u)) + (I - F⁺ F) s`, `F = A_s M⁻¹ B`.

    The law behind the figures of L15: (35) with the reaction `Qᶜ(Q + B u)` (corrected). It is
    linear in u: `(I - F⁺ F + F⁺ K) u = F⁺ w + (I - F⁺ F) s`. It keeps the servo rows too, and is
    not the smallest control.

    Args:
        task: the servo rows at one state.
        MinvB: (nv, nu) `M⁻¹ B`, the response with all loops open, as `GB`.
        s: (nu, 1) control of which the part without effect on the rows is added; like u in the
            metric of controls.
        rank_tol: relative length below which a row of F is dropped.
    """
    scale = task.scale_of(MinvB)
    factor = complete_factor(task.A_s @ MinvB, row_scale=scale, rank_tol=rank_tol)
    V = factor.basis.V
    complement = ca.SX.eye(V.shape[0]) - V @ V.T
    matrix = complement + factor.pinv_times(task.K)
    right = factor.pinv_times(task.w) + complement @ s
    return complete_factor(matrix, rank_tol=rank_tol).pinv_times(right)
