"""State feedback on the constraint manifold as a law that can be exported to C."""

from collections.abc import Mapping, Sequence
from functools import partial

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import Command, Law, LawInputs, LawInterface
from mbcasadi.control.law_interface.make_law import make_law
from mbcasadi.control.law_interface.mechanism_at_state import Mechanism
from mbcasadi.control.law_interface.options import LAW_OPTIONS, LawOptions
from mbcasadi.control.law_interface.safe_inputs import close_inputs
from mbcasadi.control.law_interface.signals import deviations
from mbcasadi.control.regulators.equilibrium import equilibrium
from mbcasadi.control.regulators.linear_action import LinearAction, integrated_rows
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.operating_point import Array, require_no_activations
from mbcasadi.control.tasks.reference import Slices
from mbcasadi.control.tasks.task import Slot
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.linalg import positive_solve
from mbcasadi.shapes import column, real_array, require_whole
from mbcasadi.system import System
from mbcasadi.system.coordinates import coordinates, rates
from mbcasadi.system.pulling_inputs import pulling_inputs
from mbcasadi.system.ranges import require_ranges

HELD = 1e-6
"""Largest distance of a held pose from the desired one, in the sizes of coordinates."""


@checked
def feedback(
    linear: Linearization,
    K: ArrayLike,
    *,
    integral: Sequence[str] = (),
    delay: int = 0,
    track_reference: bool = False,
    options: LawOptions = LAW_OPTIONS,
    notes: Mapping[str, str] | None = None,
) -> Law:
    """Return `u = u_0 - K x`, `x = (Z_qᵀ W (q ⊖ q_0), Z_vᵀ W (v - v_0), act - act_0)`.

    See `linearize`. Where the system has activation states the law takes `act`.

    The part of a measured state across the constraints does not enter x: a small gap of a loop,
    or noise that is no motion of the mechanism, has no effect on the control. u is clipped at its
    limits entry by entry (status 1); an unstable mechanism is then held only while the clipped
    control suffices.

    Args:
        linear: the linear system; the law holds its state with its control.
        K: (nu, nx) gain; with integrals (nu, nx + k).
        integral: k coordinates, by the names of their rates, whose sums the gain counts.
        delay: ticks from a measurement to the moment at which its control acts; see
            `linear_action.py`.
        track_reference: hold the state and the control in the reference's slices q, v and u. The
            gain stays that of `linear`, so they should be equilibria near it.
        options: see `LawOptions`.
        notes: of the controller, by name.

    Raises:
        ShapeError: K has a wrong shape, or holds NaN.
        UnknownNameError: no such coordinate.
        ProblemError: integrals that the controls cannot hold, or a negative delay; a setpoint that
            moves with activation states.
    """
    system = linear.system
    if system.na and track_reference:
        require_no_activations(system, "a setpoint that moves (track_reference)")
    action = linear_action(linear, K, integral, delay, options)

    def equations(at: LawInputs) -> Command:
        q_0, v_0, u_0 = setpoint(linear, at, track_reference)
        dq, dv = system.difference(q_0, at.q), at.v - v_0
        x = ca.DM(linear.from_dq) @ dq + ca.DM(linear.from_dv) @ dv
        if system.na:
            x = x + ca.DM(linear.from_dact) @ (at.act - linear.act)
        u = action.control(x, u_0, at.z)
        return Command(
            u=u,
            a=caused_acceleration(system, at, u, options),
            z_next=action.next_states(ca.DM(action.E) @ x, u, at.z),
            error=-dq,
            target=system.difference(linear.q, q_0),
        )

    default = {"setpoint.q": linear.q, "setpoint.v": linear.v, "setpoint.u": linear.u}
    return make_law(
        system,
        "feedback",
        equations,
        LawInterface(
            slots=setpoint_slots(system) if track_reference else (),
            hold=partial(held_setpoint, linear) if track_reference else None,
            default=default if track_reference else None,
            tracked=deviations(system),
            states=action.states,
            knows_activations=True,
            closes_state=False,
            notes={"law": "state feedback on the constraint manifold"} | dict(notes or {}),
        ),
        options,
    )


def linear_action(
    linear: Linearization,
    K: ArrayLike,
    integral: Sequence[str],
    delay: int,
    options: LawOptions,
) -> LinearAction:
    """Return the checked action of a gain.

    Args:
        linear: the linear system.
        K, integral, delay: as in `feedback`.
        options: period, and limits of u.
    """
    require_whole(0, delay=delay)
    E = integrated_rows(linear, tuple(integral))
    gain = finite_matrix("K", K, (linear.nu, linear.nx + len(E)))
    limits = require_ranges(linear.system, options.ctrl_limits, None).ctrl
    return LinearAction(linear, gain, E, delay, limits, options.sample_time)


def caused_acceleration(system: System, at: LawInputs, u: ca.SX, options: LawOptions) -> ca.SX:
    """Return `a_across + (P M P + I - P)⁻¹ P (B w + f_0 - h - M a_across)`, the effect of u.

    It is the desired acceleration of a law that computes u directly; w is the activation where
    there is one, else u.
    """
    m = Mechanism(system, close_inputs(system, at)[0], options.tolerance)
    w = pulling_inputs(system, m.at.q, m.at.v, u, at.act)
    along = m.P @ (m.B @ w + m.f_0 - m.h - m.M @ m.a_across)
    inertia = m.P @ m.M @ m.P + ca.SX.eye(m.P.shape[0]) - m.P
    return m.a_across + positive_solve(inertia, along)


def setpoint(
    linear: Linearization, at: LawInputs, track_reference: bool
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return q, v and u that the law holds."""
    if track_reference:
        return at.ref["setpoint.q"], at.ref["setpoint.v"], at.ref["setpoint.u"]
    return ca.SX(linear.q), ca.SX(linear.v), ca.SX(linear.u)


def held_setpoint(linear: Linearization, q: ArrayLike) -> Slices:
    """Return the setpoint that holds the pose q at rest, with the least control for it.

    Args:
        linear: of the mechanism, whose mask counts.
        q: (nq,) pose.

    Raises:
        ProblemError: no control holds the pose.
        ShapeError: a wrong shape, or NaN.
    """
    system = linear.system
    mask = None if system.mask is None else linear.mask
    pose = column("q", q, system.nq)
    held = equilibrium(system, pose, mask=mask)
    apart = np.abs(np.array(system.difference(pose, held.q)).ravel() / system.scales.coordinates)
    if np.any(apart > HELD):
        raise ProblemError(
            f"no control holds '{system.name}' at rest in this pose; the nearest pose that can be "
            f"held is {np.array2string(held.q, precision=6)}: give that, or reference() with a "
            "setpoint of your own"
        )
    return {"setpoint.q": pose, "setpoint.u": held.u}


def setpoint_slots(system: System) -> tuple[Slot, ...]:
    """Return the slices q, v and u of the reference."""
    q, v = coordinates(system), rates(system)
    controls = system.actuator_names
    return (
        Slot("setpoint.q", q.components, q.units),
        Slot("setpoint.v", v.components, v.units),
        Slot("setpoint.u", controls, ("",) * len(controls)),
    )


def finite_matrix(name: str, value: ArrayLike, shape: tuple[int, int]) -> Array:
    """Return a finite matrix of this shape.

    Raises:
        ShapeError: another shape, or NaN.
    """
    entries = real_array(name, value)
    if entries.shape != shape:
        raise ShapeError(f"{name} has shape {entries.shape}, expected {shape}")
    if not np.all(np.isfinite(entries)):
        raise ShapeError(f"{name} holds NaN or infinity; expected finite numbers")
    return entries


def require_continuous(linear: Linearization) -> None:
    """Raise `ProblemError` unless the argument is a continuous linear system that can move."""
    if not isinstance(linear, Linearization):
        raise ProblemError(
            f"linear is a {type(linear).__name__}; expected what mb.linearize(system, q, v, u) "
            "gives"
        )
    if linear.period is not None:
        raise ProblemError(
            f"the linear system is discrete, with period {linear.period} s; expected the "
            "continuous one of linearize(): the period is an argument here"
        )
    if linear.nx == 0:
        raise ProblemError(
            f"'{linear.system.name}' cannot move where it was linearised: its constraints leave no "
            "freedom; expected one at least"
        )
