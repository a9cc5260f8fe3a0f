"""Equations of a mechanism at rest.

    phi(q) = 0,   h - f_passive - f_0 = B u + Aᵀ lam

Feet on the ground are three rows each, `p(q) - p(q_0) = 0`, whose multipliers are the forces on
them in world axes; held coordinates are rows without a multiplier.

All decisions are taken on numbers without units: coordinates and rows over their sizes, forces and
limits over the largest load of the mechanism, controls by the torque that they give.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from mbcasadi.contacts.friction_cone import contact_axes, force_rows
from mbcasadi.control.regulators.loads import LoadLimits, Loads, loads
from mbcasadi.control.regulators.operating_point import Array, numbers
from mbcasadi.description import Contact
from mbcasadi.system import System, evaluate
from mbcasadi.system.coordinates import rate_names
from mbcasadi.system.names_by_kind import require_name_of
from mbcasadi.system.sizes import control_sizes, residual_sizes


@dataclass(frozen=True)
class RestSizes:
    """What coordinates, rows and forces at rest are compared with.

    Attributes:
        coordinates: (nv,) sizes of the coordinates.
        rows: (m,) sizes of the residuals.
        forces: (ny,) torque of a unit of each control and reaction.
        load: largest torque of the terms of `h - f_passive - f_0 - B u` over poses, or the largest
            limit; 1 where nothing acts.
    """

    coordinates: Array
    rows: Array
    forces: Array
    load: float


@dataclass(frozen=True)
class StaticEquilibrium:
    """A mechanism at rest, as numbers at a pose.

    Attributes:
        rested: the mechanism with feet and held coordinates as further rows.
        contacts: the feet.
        held: number of held coordinates, the last rows.
        nu: number of controls that are unknown; zero where they are given.
        limits: of `y = (u, lam, contact forces)`.
        mask: (nc,) rows that are on, of `rested`.
        equations: (q, y) → (gap, unbalanced, E, gap_q, unbalanced_q), tangent derivatives along q.
        sizes: with which numbers lose their units.
    """

    rested: System
    contacts: tuple[Contact, ...]
    held: int
    nu: int
    limits: LoadLimits
    mask: Array
    equations: ca.Function
    sizes: RestSizes

    def at(self, q: Array, y: Array | None = None) -> dict[str, Array]:
        """Return the equations' values at a pose and forces (none by default)."""
        forces = np.zeros(self.limits.G.shape[1]) if y is None else y
        return numbers(self.equations, {"q": q, "y": forces})

    def sized_at(self, q: Array, y: Array | None = None) -> dict[str, Array]:
        """Return the values of `at` in the sizes; y (ny,) is that of the model."""
        value, size = self.at(q, y), self.sizes
        coordinates = size.coordinates
        return {
            "gap": value["gap"].ravel() / size.rows,
            "unbalanced": coordinates * value["unbalanced"].ravel() / size.load,
            "E": coordinates[:, None] * value["E"] / size.forces,
            "gap_q": value["gap_q"] * coordinates / size.rows[:, None],
            "unbalanced_q": value["unbalanced_q"] * np.outer(coordinates, coordinates) / size.load,
        }

    @cached_property
    def sized_limits(self) -> LoadLimits:
        """The limits in the sizes, rows of the length one."""
        G = self.limits.G * self.sizes.load / self.sizes.forces
        length = np.linalg.norm(G, axis=1)
        return LoadLimits(G / length[:, None], self.limits.d / length)

    def forces_of(self, sized: Array) -> Array:
        """Return y (ny,) of the model."""
        return np.asarray(sized * self.sizes.load / self.sizes.forces)

    def loads_at(self, q: Array) -> Loads:
        """Return the least forces that hold a pose, or come nearest to it, in the sizes."""
        values = self.sized_at(q)
        return loads(values["E"], values["unbalanced"], self.sized_limits, self.nu)


def rest_equations(
    system: System,
    q0: Array,
    held: Sequence[str],
    contacts: Sequence[Contact],
    control: Array | None,
    mask: Array,
    ranges: Array | None,
) -> StaticEquilibrium:
    """Return the equations of a mechanism at rest.

    Args:
        system: the mechanism.
        q0: (nq,) pose where the feet are placed and whose held coordinates are kept.
        held: names of held coordinates.
        contacts: the feet.
        control: (nu,) a given control, or None where it is unknown.
        mask: (nc,) rows that are on.
        ranges: (nu, 2) of the controls, or None for no limits.

    Raises:
        UnknownNameError: an unknown coordinate or frame.
    """
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    feet = [_foot(system, contact, q, q0) for contact in contacts]
    names = rate_names(system)
    for name in held:
        require_name_of(system, "coordinate", name, names)
    displacement = system.difference(q0, q)
    held_rows = ca.vertcat(ca.SX(0, 1), *(displacement[names.index(name)] for name in held))
    rows = ca.vertcat(ca.SX(0, 1), *feet, held_rows)
    rested = system.with_rows(q, v, phi=rows) if rows.numel() else system
    on = np.append(mask, np.ones(rows.numel()))
    pushing = rested.nc - len(held)
    limits = _limits(system, contacts, control is None, ranges)
    return StaticEquilibrium(
        rested=rested,
        contacts=tuple(contacts),
        held=len(held),
        nu=system.nu if control is None else 0,
        limits=limits,
        mask=on,
        equations=_equations(rested, q, on, pushing, control),
        sizes=_sizes(rested, q0, pushing, control, limits),
    )


def _equations(
    rested: System, q: ca.SX, mask: Array, pushing: int, control: Array | None
) -> ca.Function:
    """Return (q, y) → (gap, unbalanced, E, gap_q, unbalanced_q).

    `unbalanced = h - f_passive - f_0 - E y`.
    """
    v_0 = ca.SX.zeros(rested.nv)
    at = {"q": q, "v": v_0}
    none = rested.nc == 0
    phi = ca.SX(0, 1) if none else ca.DM(mask) * evaluate(rested.constraint, at)
    A = ca.SX(0, rested.nv) if none else ca.diag(ca.DM(mask)) @ evaluate(rested.loop_jacobian, at)
    weight = rested.bias_force(q, v_0) - rested.passive_force(q, v_0)
    weight = weight - rested.actuator_bias(q, v_0)
    B = evaluate(rested.actuation, at)
    if control is not None:
        weight, B = weight - B @ ca.DM(control), ca.SX(rested.nv, 0)
    E = ca.densify(ca.horzcat(B, A[:pushing, :].T))
    y = ca.SX.sym("y", E.shape[1])
    unbalanced, N = weight - E @ y, rested.velocity_map(q)
    outputs = [phi, unbalanced, E, ca.jacobian(phi, q) @ N, ca.jacobian(unbalanced, q) @ N]
    return ca.Function(
        "at_rest",
        [q, y],
        [ca.densify(x) for x in outputs],
        ["q", "y"],
        ["gap", "unbalanced", "E", "gap_q", "unbalanced_q"],
        {"cse": True},
    )


def _sizes(
    rested: System, q0: Array, pushing: int, control: Array | None, limits: LoadLimits
) -> RestSizes:
    """Return the sizes of a mechanism at rest near q0; the first `pushing` rows have forces."""
    coordinates, rows = rested.scales.coordinates, residual_sizes(rested)
    controls = control_sizes(rested) if control is None else np.zeros(0)
    forces = np.append(controls, rows[:pushing])
    largest = 0.0
    for q in (q0, *(q for q, _ in rested.scales.states)):
        still = np.zeros(rested.nv)
        terms = [rested.bias_force(q, still), rested.passive_force(q, still)]
        terms.append(rested.actuator_bias(q, still))
        if control is not None:
            terms.append(evaluate(rested.actuation, {"q": q, "v": still}) @ control)
        largest = max(
            largest,
            *(float(np.abs(coordinates * x.full().ravel()).max(initial=0.0)) for x in terms),
        )
    if largest == 0.0:  # nothing acts: as strong as its actuators
        ends = np.abs(limits.G[:, : controls.size]).T * np.abs(limits.d)
        largest = float((ends * controls[:, None]).max(initial=0.0))
    return RestSizes(coordinates, rows, forces, largest or 1.0)


def _foot(system: System, contact: Contact, q: ca.SX, q0: Array) -> ca.SX:
    """Return (3, 1) the displacement of a foot from its place at q0.

    Of a foot that rolls it is that of the material that touches at q0.
    """
    frame = system.frame(contact.frame, contact.kind)
    place = frame.pose(q0)[0]
    if frame.carrier is None or not frame.carrier.rolling:
        return ca.SX(frame.pose(q)[0] - place)
    assert system.tree is not None  # of what rolls
    assert frame.carrier.body is not None
    body = system.frame(system.tree.bodies[frame.carrier.body].name, "body")
    (p, R), (p0, R0) = body.pose(q), body.pose(q0)
    return ca.SX(p + R @ (R0.T @ (place - p0)) - place)


def _limits(
    system: System, contacts: Sequence[Contact], unknown: bool, ranges: Array | None
) -> LoadLimits:
    """Return the limits of y: ranges of the controls, pyramids and normal forces of the feet."""
    nu = system.nu if unknown else 0
    first = nu + system.nc
    ny = first + 3 * len(contacts)
    rows, bounds = [np.zeros((0, ny))], [np.zeros(0)]
    for i in range(nu if ranges is not None else 0):
        assert ranges is not None
        for sign, bound in ((-1.0, -ranges[i, 0]), (1.0, ranges[i, 1])):
            if np.isfinite(bound):
                rows.append(sign * np.eye(ny)[i : i + 1])
                bounds.append(np.array([bound]))
    for k, contact in enumerate(contacts):
        D, ends = force_rows(contact)  # of the inner pyramid, which is safe
        padded = np.zeros((len(D), ny))
        padded[:, first + 3 * k : first + 3 * k + 3] = D @ contact_axes(np.array(contact.normal))
        for sign, bound in ((1.0, ends[:, 1]), (-1.0, -ends[:, 0])):
            finite = np.isfinite(bound)
            rows.append(sign * padded[finite])
            bounds.append(bound[finite])
    return LoadLimits(np.vstack(rows), np.concatenate(bounds))
