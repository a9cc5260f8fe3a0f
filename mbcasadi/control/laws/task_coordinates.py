"""Independent coordinates θ(q) of a constrained mechanism, and the map from their rates to v.

`v = Λ dθ/dt` with `(∂θ/∂q) Λ = I` and `A Λ = 0`  [A05, section 7.1; App. E corrected: the paper
prints the product the other way round].
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import Array, LawInterface
from mbcasadi.control.law_interface.mechanism_at_state import Mechanism
from mbcasadi.control.law_interface.pivots import leading_rows
from mbcasadi.control.law_interface.verdicts import attainable
from mbcasadi.control.laws.poses import POSE_RANK_TOL, motions_at
from mbcasadi.control.tasks.reference import Slices
from mbcasadi.control.tasks.task import Gain, Slot, per_row
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.shapes import require_kind, require_texts
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.system.coordinates import authored_pose, moving_size, per, scalar_coordinates
from mbcasadi.system.names_by_kind import require_name_of
from mbcasadi.system.parameter_inputs import of_configuration
from mbcasadi.system.parametric import carries_parameters


@summarised
@dataclass(frozen=True)
class Coordinates:
    """θ(q), the coordinates that a law tracks.

    Attributes:
        names, units: (k,) of the entries.
        theta: (q) → (theta), (k, 1).
        rows: (q, v) → (theta, J, c): `dθ/dt = J v` and `d²θ/dt² = J a + c`.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    theta: ca.Function
    rows: ca.Function

    def interface(self, law: str) -> LawInterface:
        """Return that of a law, named in its notes, which tracks θ."""

        def held(q: Array) -> Slices:
            return {"theta.q": np.array(self.theta(q)).ravel()}

        return LawInterface(self.slots, held, tracked=self.tracked, notes={"law": law})

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The slices q, v and a of the reference."""
        rate = tuple(per(unit, "s") for unit in self.units)
        second = tuple(per(unit, "s²") for unit in self.units)
        return (
            Slot("theta.q", self.names, self.units),
            Slot("theta.v", self.names, rate),
            Slot("theta.a", self.names, second),
        )

    @property
    def tracked(self) -> tuple[tuple[str, str], ...]:
        """Name and unit of each entry of the error."""
        names = (f"theta.{name}" for name in self.names)
        return tuple(zip(names, self.units, strict=True))


@dataclass(frozen=True)
class DesiredMotion:
    """The desired motion of a law.

    Attributes:
        a: (nv, 1) acceleration in the mechanism's weighted coordinates.
        Lam: (nv, k) Λ, in weighted coordinates.
        missing: (k, 1) part of the desired `d²θ/dt²` that the constraints do not allow.
        attainable: one where nothing is missing.
        error, target: (k, 1) of θ.
    """

    a: ca.SX
    Lam: ca.SX
    missing: ca.SX
    attainable: ca.SX
    error: ca.SX
    target: ca.SX


@checked
@carries_parameters
def joint_coordinates(system: System, joints: Sequence[str]) -> Coordinates:
    """Return θ made of hinges and slides, by name.

    Raises:
        UnknownNameError: no such joint; the message lists those that can be taken.
        ProblemError: no joints, or one of them twice.
    """
    require_texts("joints", joints)
    scalar = scalar_coordinates(system)
    for name in joints:
        require_name_of(system, "hinge or slide", name, list(scalar))
    _require_different(joints)
    if not joints:
        raise ProblemError("joints is empty; expected the name of at least one hinge or slide")
    places = [scalar[name][0] for name in joints]
    units = [scalar[name][2] for name in joints]
    q = ca.SX.sym("q", system.nq)
    theta = ca.Function("theta", [q], [q[places]], ["q"], ["theta"])
    return function_coordinates(system, theta, names=joints, units=units)


@checked
@carries_parameters
def function_coordinates(
    system: System,
    theta: ca.Function,
    *,
    names: Sequence[str] | None = None,
    units: Sequence[str] | None = None,
) -> Coordinates:
    """Return θ given as a Function (q) → (theta).

    Args:
        system: the mechanism.
        theta: one input (nq, 1), one output (k, 1), differentiable.
        names, units: (k,) of its entries; `theta0`, … and no unit by default.

    Raises:
        ShapeError: the Function has another signature, or the names are not k.
        ProblemError: theta is no Function, or a name occurs twice.
    """
    require_kind("theta", theta, ca.Function, "(q) -> (theta)")
    for label, texts in {"names": names, "units": units}.items():
        if texts is not None:
            require_texts(label, texts)
    if theta.n_in() != 1 or theta.size_in(0) not in {(system.nq, 1), (moving_size(system), 1)}:
        raise ShapeError(f"theta takes {theta.size_in(0)}, expected one input (nq, 1)")
    k = theta.size1_out(0)
    if theta.n_out() != 1 or theta.size2_out(0) != 1 or not k:
        raise ShapeError(f"theta returns {theta.size_out(0)}, expected one output (k, 1)")
    row_names = tuple(names) if names is not None else tuple(f"theta{i}" for i in range(k))
    row_units = tuple(units) if units is not None else ("",) * k
    if len(row_names) != k or len(row_units) != k:
        raise ShapeError(
            f"theta has {k} entries, found {len(row_names)} names, {len(row_units)} units"
        )
    _require_different(row_names)
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    theta = of_configuration(theta, q)
    value, N = theta(q), system.velocity_map(q)
    J = ca.jacobian(value, q) @ N
    c = ca.jtimes(J @ v, q, N @ v)
    outputs = [ca.densify(value), J, ca.densify(c)]
    rows = ca.Function("theta_rows", [q, v], outputs, ["q", "v"], ["theta", "J", "c"])
    return Coordinates(row_names, row_units, theta, rows)


@checked
@carries_parameters
def chosen_coordinates(
    system: System,
    q: ArrayLike | None = None,
    *,
    among: Sequence[str] | None = None,
    metric: ArrayLike | None = None,
) -> Coordinates:
    """Return as many joints as there are motions at q, those that determine the rest best.

    Pivots of a QR factorisation of the motions' basis (in the metric) pick the joints. Away from q
    another choice may be better; a pose where θ fails to determine v has a large Λ.

    Args:
        system: read from a model.
        q: (nq,) closed pose, not a singular one; the initial pose by default.
        among: names of the joints to choose from; all hinges and slides by default.
        metric: (nv, nv) weights of velocities; those of `law_interface/weights.py` by default.

    Raises:
        UnknownNameError: a name in `among` is no hinge or slide.
        ProblemError: the hinges and slides do not determine the motion, or there is none.
    """
    if among is not None:
        require_texts("among", among)
    scalar = scalar_coordinates(system)
    for name in among or ():
        require_name_of(system, "hinge or slide", name, list(scalar))
    scalar = {name: scalar[name] for name in (scalar if among is None else among)}
    Z = motions_at(system, authored_pose(system) if q is None else q, metric=metric)
    names, dofs = list(scalar), [dof for _, dof, _ in scalar.values()]
    k = Z.shape[1]
    if not k:
        raise ProblemError(f"'{system.name}' cannot move at this pose; there is nothing to control")
    Z_scalar = Z[dofs]
    if np.linalg.matrix_rank(Z_scalar, POSE_RANK_TOL) < k:
        raise ProblemError(
            f"{', '.join(names)} do not determine the {k} motions of '{system.name}'; give others, "
            "or function_coordinates(system, theta)"
        )
    return joint_coordinates(system, [names[i] for i in leading_rows(Z_scalar)])


def desired_motion(
    mechanism: Mechanism,
    coordinates: Coordinates,
    ref: Mapping[str, ca.SX],
    gains: tuple[Array, Array],
    damping: float = 0.0,
) -> DesiredMotion:
    """Return `a = Λ̇ θ̇ + Λ (θ̈_d + G_D ė + G_P e)`, `e = θ_d - θ`  [A05, eq. 46].

    `Λ = (J P)⁺` lies in null(A), and `J Λ = I` where J P has full row rank: the corrected App. E.
    With `a = a_across + P a`, `Λ̇ θ̇` is `a_across - Λ (J̇ v + J a_across)`: no derivative of Λ, and
    it holds on states that have drifted off the rows. Motions that θ does not determine, as at a
    singular pose, get the least acceleration, minus `damping` times their velocity. Where θ
    cannot move as desired, as at a dead point of one of its joints, the remainder is `missing`.

    Args:
        mechanism: at the present state.
        coordinates: θ.
        ref: slices `theta.q`, `theta.v`, `theta.a` (k,) of the reference.
        gains: G_P, 1/s², and G_D, 1/s, (k,) each.
        damping: 1/s, of motions that θ does not determine.
    """
    q, v = mechanism.at.q, mechanism.at.v
    theta, J, c = coordinates.rows(q, v)
    kp, kd = gains
    error = ref["theta.q"] - theta
    second = ref["theta.a"] + kd * (ref["theta.v"] - J @ v) + kp * error
    J = mechanism.weighted_rows(J)
    factor = mechanism.factor_along(J)
    Lam = factor.pinv_times(ca.SX.eye(J.shape[0]))
    a = mechanism.a_across + Lam @ (second - c - J @ mechanism.a_across)
    missing = second - c - J @ a
    attained = attainable(missing, second, c, J @ mechanism.a_across)
    if damping:
        v_free = mechanism.P @ mechanism.weighted_rate(v)
        V = factor.basis.V
        a = a - damping * (v_free - V @ (V.T @ v_free))
    return DesiredMotion(a, Lam, missing, attained, error, ref["theta.q"])


def motion_gains(coordinates: Coordinates, kp: Gain, kd: Gain | None) -> tuple[Array, Array]:
    """Return G_P, 1/s², and G_D, 1/s, (k,) each; G_D is critical unless given.

    Raises:
        ProblemError: gains that are negative, not finite or not k.
    """
    G_P = per_row("theta", "kp", kp, coordinates.names)
    G_D = 2 * np.sqrt(G_P) if kd is None else per_row("theta", "kd", kd, coordinates.names)
    return G_P, G_D


def _require_different(names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ProblemError(f"θ names {', '.join(twice)} more than once; expected different entries")
