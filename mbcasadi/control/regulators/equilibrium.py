"""Static equilibria of mechanisms with loops, passive joints and feet, and the forces in them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.contacts.friction_cone import contact_axes, require_contacts, require_ground
from mbcasadi.control.regulators.loads import (
    BALANCED,
    FREE_TOL,
    Loads,
    in_units,
    null,
    persistent_directions,
    range_basis,
)
from mbcasadi.control.regulators.operating_point import Array, place_of
from mbcasadi.control.regulators.rest_search import nearest_pose
from mbcasadi.control.regulators.static_equilibrium import (
    RestSizes,
    StaticEquilibrium,
    rest_equations,
)
from mbcasadi.control.regulators.text import (
    direction_text,
    largest_entries,
    moving_names,
    named_values,
)
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column
from mbcasadi.short_text import summarised
from mbcasadi.simulation import assemble
from mbcasadi.system import System, evaluate
from mbcasadi.system.coordinates import rate_names
from mbcasadi.system.parametric import at_model_values
from mbcasadi.system.pulling_inputs import pulling_ranges, pulling_shares, resting_state
from mbcasadi.system.sizes import control_sizes, rate_sizes

AT_LIMIT = 1e-9
"""Distance of a control from its limit, in loads and relative to it, that counts as none; and rate
of rows at rest, over its size."""


@summarised
@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A pose at rest and the forces on it: `h - f_passive - f_0 = B u + Aᵀ lam + Σ Jᵀ F`.

    Attributes:
        system: the mechanism.
        q, u: (nq,), (nu,) pose and holding control.
        act: (na,) activation states at rest.
        lam: (nc,) multipliers, the least ones, each times the size of its row's residual, where
            rows repeat.
        contact_forces: (k, 3) force on each foot, N: along its normal, t1, t2.
        residual: (nv,) unbalanced force, N or N m: rounding errors, or what dry friction holds.
        free_directions: (nv, ·) orthonormal δq along which the pose can move and still be held, to
            first order, by an adapted control (regardless of its limits). Their span depends on no
            units of the model, which columns are orthonormal does.
        neutral_directions: (nv, ·) the same with the control unchanged.
        control_directions: (nu, ·) δu that change only internal forces.
        at_limit: controls at a limit of their range.
    """

    system: System
    q: Array
    u: Array
    lam: Array
    contact_forces: Array
    residual: Array
    free_directions: Array
    neutral_directions: Array
    control_directions: Array
    at_limit: tuple[str, ...]
    act: Array = field(default_factory=lambda: np.zeros(0))

    def _summary(self) -> dict[str, object]:
        return {
            "system": self.system.name,
            "q": self.q,
            "u": self.u,
            "at limit": self.at_limit,
            "unique control": self.unique_control,
        }

    @property
    def unique_control(self) -> bool:
        """Whether only one control holds the pose."""
        return bool(self.control_directions.shape[1] == 0)

    @property
    def in_words(self) -> str:
        """The forces that hold the pose, and its free directions."""
        names, controls = rate_names(self.system), self.system.actuator_names
        sentences = [f"'{self.system.name}' rests"]
        if self.u.size:
            sentences.append(f"held by {named_values(controls, self.u)}")
            sentences.append(
                "no other control holds this pose"
                if self.unique_control
                else f"{moving_names(controls, self.control_directions)} can push against each "
                "other, and this control is the least"
            )
        if self.at_limit:
            sentences.append(f"at the end of the range: {', '.join(self.at_limit)}")
        free, neutral = self.free_directions, self.neutral_directions
        sentences.append(f"neighbouring poses can be held in {direction_text(names, free)}")
        sentences.append(f"with the control as it is, in {direction_text(names, neutral)}")
        return "; ".join(sentences)


@checked
@at_model_values
def equilibrium(
    system: System,
    q0: ArrayLike | None = None,
    *,
    held: Sequence[str] = (),
    u: ArrayLike | None = None,
    contacts: Sequence[Contact] = (),
    within_limits: bool = True,
    friction: bool = False,
    mask: ArrayLike | None = None,
) -> Equilibrium:
    """Return the pose nearest to q0 that can be held at rest, with the least control for it.

    First q: the assembled pose nearest to q0 if it can be held, else the nearest one that can
    (`min |q ⊖ q0|²` in the sizes of the coordinates, a local minimum). Then u: the least one, each
    control by the largest torque that it gives, within its ranges where they bind; then the least
    reactions. Nothing depends on the units of the model. Passive joints, redundant rows and springs
    are part of the equations; joint ranges are ignored.

    Args:
        system: the mechanism.
        q0: (nq,) pose to start from; the model's own by default.
        held: coordinates (names of v: joints, `joint.vx`, … for free ones) that keep q0's value.
        u: (nu,) a given control; then the pose is one that it holds.
        contacts: feet that stay where q0 has them, each with a force in its friction pyramid.
        within_limits: keep controls inside their ranges.
        friction: the assembled pose is at rest, too, where dry friction of joints (`friction_loss`)
            holds what nothing else balances: fingers of grams do not hang down. It is no part of
            the search for another pose.
        mask: (nc,) rows that are on; the system's own by default.

    Raises:
        ProblemError: no equilibrium found near q0; the message names the joints whose force cannot
            be balanced, or the controls and feet that are too weak. Constraints that move with
            time.
        AssemblyError: the constraints cannot be closed with the held coordinates.
        UnknownNameError, ShapeError: unknown coordinate or frame; wrong shape.
    """
    if system.timed:
        raise ProblemError(f"'{system.name}' has constraints that move with time: it has no rest")
    start = _start(system, q0)
    place = place_of(system, start, mask=mask)
    require_contacts(contacts)
    require_ground(contacts)
    control = None if u is None else _pulling(system, column("u", u, system.nu))
    ranges = pulling_ranges(system) if within_limits else None
    at_rest = rest_equations(system, start, held, contacts, control, place.mask, ranges)
    _require_rest(system, start, place.mask)
    assembled = assemble(at_rest.rested, start, mask=at_rest.mask) if at_rest.rested.nc else start
    assembled_loads = at_rest.loads_at(assembled)
    stays = assembled_loads.balanced or (friction and _sticks(system, at_rest, assembled_loads))
    if stays and assembled_loads.feasible:
        return _report(system, at_rest, assembled, assembled_loads, control, ranges)
    solution = nearest_pose(at_rest, start, assembled)
    if solution is None:
        raise ProblemError(_failure_message(system, at_rest, assembled_loads))
    return _report(system, at_rest, *solution, control, ranges)


def _pulling(system: System, u: Array) -> Array:
    """Return what pulls at rest under a given control.

    Raises:
        ProblemError: an integrator, which rests with any activation; or a PID servo with one.
    """
    for actuator in system.actuators:
        remembers = actuator.pid is not None and actuator.pid.integral is not None
        if remembers or (actuator.act is not None and actuator.dynamics == "integrator"):
            raise ProblemError(
                f"actuator '{actuator.name}' integrates its control or error, so u does not say "
                "with what it pulls at rest; expected no u"
            )
    return u / pulling_shares(system)


def _start(system: System, q0: ArrayLike | None) -> Array:
    if q0 is not None:
        return column("q0", q0, system.nq)
    if system.tree is None:
        raise ProblemError(f"'{system.name}' was given by equations; expected q0 to start from")
    return np.array(system.tree.q0, dtype=float)


def _require_rest(system: System, q: Array, mask: Array) -> None:
    rate = evaluate(system.loop_rate, {"q": q, "v": np.zeros(system.nv)}) if system.nc else 0.0
    sized = mask * np.array(rate).ravel() / rate_sizes(system, np.zeros(system.nv))
    if np.abs(sized).max(initial=0.0) > AT_LIMIT:
        raise ProblemError(f"'{system.name}' has rows that require a motion: it has no rest")


def _sticks(system: System, at_rest: StaticEquilibrium, loads: Loads) -> bool:
    """Return whether dry friction of joints holds what controls and reactions do not balance."""
    losses = np.zeros(system.nv)
    for joint in () if system.tree is None else system.tree.joints:
        size = {"free": 0, "ball": 3}.get(joint.kind, 1)
        losses[joint.dof : joint.dof + size] = joint.friction_loss
    sizes = at_rest.sizes
    unbalanced = np.abs(loads.unbalanced) * sizes.load / sizes.coordinates
    rounding = BALANCED * sizes.load / sizes.coordinates
    return bool(np.all(unbalanced <= losses + rounding))


def _require_force(system: System, q: Array, w: Array, sizes: RestSizes) -> None:
    """Raise where an actuator's own force range clips the holding force.

    Raises:
        ProblemError: it does; the message names the coordinates.
    """
    v_0 = np.zeros(system.nv)
    B = evaluate(system.actuation, {"q": q, "v": v_0})
    linear_force = np.array(B @ w + system.actuator_bias(q, v_0)).ravel()
    actual_force = linear_force
    if system.nu:
        u, act = resting_state(system, w, q)
        at = {"q": q, "v": v_0, "u": u, "act": act}
        actual_force = np.array(evaluate(system.actuator_force, at)).ravel()
    torques = (sizes.coordinates * x for x in (actual_force - linear_force, linear_force))
    difference, largest = (np.abs(x).max(initial=0.0) for x in torques)
    if difference > BALANCED * (sizes.load + largest):
        force = largest_entries(rate_names(system), actual_force - linear_force)
        raise ProblemError(
            f"'{system.name}': force ranges of the actuators clip the force that holds the pose, "
            f"by {force} (N or N m); expected stronger actuators, or another pose"
        )


def _report(
    system: System,
    at_rest: StaticEquilibrium,
    q: Array,
    loads: Loads,
    control: Array | None,
    ranges: Array | None,
) -> Equilibrium:
    y = at_rest.forces_of(loads.y)
    w = y[: system.nu] if control is None else control
    u, act = resting_state(system, w, q)
    reactions = y[at_rest.nu :]
    if ranges is not None:
        _require_force(system, q, w, at_rest.sizes)
    value = at_rest.sized_at(q, y)
    coordinates, forces = at_rest.sizes.coordinates, at_rest.sizes.forces
    gap_q = value["gap_q"][: value["gap_q"].shape[0] - at_rest.held]
    reacting = value["E"][:, at_rest.nu :]
    inner = null(value["E"], FREE_TOL)[: at_rest.nu]
    return Equilibrium(
        system=system,
        q=q,
        u=u,
        lam=reactions[: system.nc],
        contact_forces=_in_axes(at_rest.contacts, reactions[system.nc :]),
        residual=at_rest.at(q, y)["unbalanced"].ravel(),
        free_directions=in_units(
            persistent_directions(gap_q, value["unbalanced_q"], value["E"]), coordinates
        ),
        neutral_directions=in_units(
            persistent_directions(gap_q, value["unbalanced_q"], reacting), coordinates
        ),
        control_directions=in_units(range_basis(inner), 1 / forces[: at_rest.nu]),
        at_limit=_at_limit(system, w, ranges, at_rest.sizes.load),
        act=act,
    )


def _at_limit(system: System, u: Array, ranges: Array | None, load: float) -> tuple[str, ...]:
    """Return the names of the controls at a limit of their range."""
    if ranges is None:
        return ()
    distance = np.abs(u[:, None] - ranges).min(axis=1, initial=np.inf)
    close = distance < AT_LIMIT * (load / control_sizes(system) + np.abs(u))
    return tuple(
        name for name, is_close in zip(system.actuator_names, close, strict=True) if is_close
    )


def _in_axes(contacts: Sequence[Contact], forces: Array) -> Array:
    axes = [contact_axes(np.asarray(contact.normal, dtype=float)) for contact in contacts]
    split = forces.reshape(-1, 3)
    return np.array([R @ f for R, f in zip(axes, split, strict=True)]).reshape(-1, 3)


def _failure_message(system: System, at_rest: StaticEquilibrium, loads: Loads) -> str:
    """Return a message with the forces that cannot be balanced at the assembled pose."""
    head = f"'{system.name}': no equilibrium was found near q0"
    if not loads.balanced:
        sizes = at_rest.sizes
        unbalanced = loads.unbalanced * sizes.load / sizes.coordinates
        force = largest_entries(rate_names(system), unbalanced)
        return (
            f"{head}: at the assembled pose neither control nor constraint balances {force} "
            "(N or N m). Start nearer to a pose at rest, or free held coordinates"
        )
    y = at_rest.forces_of(loads.y)
    over = at_rest.limits.G @ y - at_rest.limits.d
    names = (*system.actuator_names[: at_rest.nu], *(f"row {n}" for n in system.constraint_names))
    feet = tuple(f"foot {c.frame}" for c in at_rest.contacts for _ in range(3))
    touched = np.abs(at_rest.limits.G[over > 0]).max(axis=0, initial=0.0) > 0
    weak = dict.fromkeys(n for n, t in zip(names + feet, touched, strict=True) if t)
    weak_names = ", ".join(weak)
    if not any(name in weak for name in system.actuator_names):
        return f"{head} within the limits of {weak_names}"
    needed = named_values(system.actuator_names, y[: at_rest.nu])
    return f"{head} within limits: beyond them {weak_names}; without limits {needed}"
