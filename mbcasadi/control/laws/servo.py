"""Constraint-following servo control: actuators enforce constraints that no joint has  [L15].

    a(u) = a_0 + G B u,    G = M⁻¹ - M⁻¹Aᵀ (A M⁻¹ Aᵀ)⁺ A M⁻¹ = (P M P)⁺

is the motion within the passive constraints, their reaction to the control included. The printed
law (14, 16, 35) of L15 takes the reaction from Q alone, and then the loops open.
"""

from dataclasses import replace
from typing import NamedTuple

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.constraints import stabilised_bias
from mbcasadi.control.law_interface.law import Command, Law, LawInputs, LawInterface
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.mechanism_at_state import Mechanism
from mbcasadi.control.law_interface.options import LAW_OPTIONS, LawOptions
from mbcasadi.control.law_interface.verdicts import ATTAIN_TOL, is_definite
from mbcasadi.control.tasks.servo_rows import BAUMGARTE_ADVICE, SERVO_ADVICE, SIGNALS, ServoRows
from mbcasadi.control.tasks.servo_task import ServoTask
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import Baumgarte
from mbcasadi.dynamics.terms import rates_of
from mbcasadi.errors import ShapeError, UnsupportedFeatureError
from mbcasadi.linalg import complete_factor, tree_cholesky, tree_solve
from mbcasadi.shapes import real_array, require_choice, require_kind
from mbcasadi.system import System
from mbcasadi.system.parametric import carries_parameters

FORMS = ("least_norm", "figures")
"""`(A_s G B)⁺` of the constrained mechanism, or `(A_s M⁻¹ B)⁺` as in the paper's figures."""

STABILISED = Baumgarte(10.0, 10.0)  # 1/s, critically damped
HALF = 0.5  # above it, an entry of `off` releases a row


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


@checked
@carries_parameters
def servo_control(
    system: System,
    servo: ServoRows,
    *,
    form: str = "least_norm",
    baumgarte: Baumgarte | None = STABILISED,
    f_nonideal: ca.Function | None = None,
    control_metric: ArrayLike | None = None,
    options: LawOptions = LAW_OPTIONS,
) -> Law:
    """Return `u = (A_s G B)⁺ (b_s - A_s a_0) + (I - K⁺ K) s`  [L15, eq. 35, corrected].

    `a_0` is the constrained acceleration at u = 0 and `G = M⁻¹ - M⁻¹Aᵀ (A M⁻¹Aᵀ)⁺ A M⁻¹`: passive
    constraints react to the control, which the printed `Qᶜ(Q)` omits. Fully, under- and
    redundantly actuated mechanisms are one case; rank is revealed, and M need only be positive
    definite on null(A); where it is not, the status is 4. With s = 0 u is the smallest that keeps
    the rows; motions that they leave free are neither damped nor held.

    Slices of `ref`: `y`, `ydot`, `yddot` (ny,) moving quantities, where the rows have any; `off`
    (k,), one for a row that is not enforced now; `s` (nu,), of which the part without effect on
    the servo rows is added, in the control's unit. All zero means: nothing moves, all rows, least
    norm.

    Status 2: the rows are unattainable, (33) fails: they contradict each other or a passive
    constraint, or actuators do not reach them; u is the least-squares one of least norm, squares of
    the rows as they are given: scale a row to weigh it. `servo_report` says which. Near a pose
    where K loses rank u grows without bound. At its limits u is clipped entry by entry and the rows
    are violated; use `within_limits` where they matter.

    Args:
        system: the mechanism; its mask switches passive constraints.
        servo: rows of `servo_rows` or `keep_rows`.
        form: "least_norm", or "figures": `u = (A_s M⁻¹B)⁺ (b_s - A_s M⁻¹(Q + Qᶜ(Q + B u)))`, linear
            in u, the law behind L15's figures. Not minimum-norm; it needs M invertible and rows
            that the actuators reach with all loops open: those of a carried bar fail.
        baumgarte: servo rows decay as `φ̈ + 2αφ̇ + β²φ = 0`; rows for velocities as `exp(-2αt)`.
            None as in [L15, eq. 47]: an error stays, and grows linearly where it has a rate.
        f_nonideal: (q, v) → (C): (nv, 1), for example friction of the passive constraints.
        control_metric: (nu, nu), or (nu,) for a diagonal one, in which u is least; by default that
            of `law_interface/weights.py`.
        options: see `LawOptions`.

    Raises:
        ProblemError: no such form, or what `make_law` refuses.
        ShapeError: `f_nonideal` is no (q, v) → (nv, 1).
        UnsupportedFeatureError: "figures", and M is only semidefinite.
    """
    rank_tol = options.tolerance
    require_kind("servo", servo, ServoRows, SERVO_ADVICE)
    if baumgarte is not None:
        require_kind("baumgarte", baumgarte, Baumgarte, BAUMGARTE_ADVICE)
    require_choice("form", form, FORMS)
    if form == "figures" and system.semidefinite:
        raise UnsupportedFeatureError(
            f"form='figures' needs a positive definite M, but the M of '{system.name}' is "
            "singular; use form='least_norm'"
        )
    _require_force(f_nonideal, system)
    _require_rows(servo, system)

    def equations(at: LawInputs) -> Command:
        m = Mechanism.measured(system, at, rank_tol, control_metric=control_metric)
        signals = tuple(at.ref.get(each, ca.SX(0, 1)) for each in SIGNALS)
        on = ca.SX(at.ref["off"] < HALF)
        task = servo_terms(
            m,
            servo,
            (signals[0], signals[1], signals[2]),
            on=on,
            baumgarte=baumgarte,
            f_nonideal=f_nonideal,
        )
        s = m.weighted_control(at.ref["s"])
        if form == "least_norm":
            u = least_norm_control(task, s, rank_tol)
            solvable = m.has_unique_motion
        else:
            L = tree_cholesky(m.M)
            u = figures_control(task, tree_solve(L, m.unit_actuation), s, rank_tol)
            solvable = is_definite(L, ca.diag(m.M))
        return replace(_command(m, task, u, _target(servo, at, on)), solvable=solvable)

    interface = LawInterface(
        _slots(servo, system),
        lambda q: ServoTask(servo).hold_reference(system, q),
        default={},
        tracked=list(zip(servo.names, servo.units, strict=True)),
        notes={"law": f"constraint-following servo control, {form}"}
        | _stabilisation_note(baumgarte),
    )
    return make_law(system, "servo_control", equations, interface, options)


def _command(m: Mechanism, task: ServoTerms, u: ca.SX, target: ca.SX) -> Command:
    return Command(
        u=m.control(u),
        a=m.joint_rate(task.a_0 + task.GB @ u),
        residual={"servo": task.K @ u - task.w},
        attainable=task.is_attained(u),
        error=-task.error,
        target=target,
    )


def _target(servo: ServoRows, at: LawInputs, on: ca.SX) -> ca.SX:
    """Return the target of the rows, `phi(q, 0) - phi(q, y)`: y itself where phi is `… - y`."""
    values = []
    for scale in (0, 1):
        signals = [scale * at.ref.get(each, ca.SX(0, 1)) for each in SIGNALS]
        form = servo.at(at.q, at.v, *signals)
        values.append(ca.vertcat(form.phi[: servo.holonomic, 0], form.psi[servo.holonomic :, 0]))
    return on * (values[0] - values[1])


def _slots(servo: ServoRows, system: System) -> list[Slot]:
    off = Slot("off", servo.names, ("",) * servo.count)
    s = Slot("s", system.actuator_names, ("",) * system.nu)
    return [*servo.slots(), off, s]


def _require_force(f_nonideal: ca.Function | None, system: System) -> None:
    if f_nonideal is None:
        return
    require_kind("f_nonideal", f_nonideal, ca.Function, "(q, v) -> (C)")
    sizes = [f_nonideal.numel_in(i) for i in range(f_nonideal.n_in())]
    if sizes != [system.nq, system.nv] or f_nonideal.numel_out(0) != system.nv:
        raise ShapeError(
            f"f_nonideal is {f_nonideal}; expected (q[{system.nq}], v[{system.nv}]) -> "
            f"(C[{system.nv}])"
        )


def _require_rows(servo: ServoRows, system: System) -> None:
    nq, nv = servo.form.numel_in("q"), servo.form.numel_in("v")
    if (nq, nv) != (system.nq, system.nv):
        raise ShapeError(
            f"servo rows are for nq = {nq}, nv = {nv}; '{system.name}' has nq = {system.nq}, "
            f"nv = {system.nv}"
        )


def _stabilisation_note(baumgarte: Baumgarte | None) -> dict[str, str]:
    if baumgarte is None:
        return {"stabilisation": "none: an error of the servo rows stays, its rate too"}
    alpha, beta = (real_array("baumgarte", x).ravel() for x in (baumgarte.alpha, baumgarte.beta))
    return {"stabilisation": f"alpha {alpha.tolist()} 1/s, beta {beta.tolist()} 1/s"}


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
    error = ca.vertcat(form.phi[: servo.holonomic, 0], form.psi[servo.holonomic :, 0])
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
