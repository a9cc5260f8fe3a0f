"""Equations of a mechanism at rest, and the search for the nearest pose that can be held.

    phi(q) = 0,   h - f_passive - f_0 = B u + Aᵀ lam

Feet on the ground are three rows each, `p(q) - p(q_0) = 0`, whose multipliers are the forces on
them in world axes; held coordinates are rows without a multiplier.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from mbcasadi.control.regulators.loads import Limits, Loads, loads
from mbcasadi.control.regulators.operating_point import Array, numbers
from mbcasadi.description import Contact
from mbcasadi.qp.friction_cone import contact_axes, pyramid_rows
from mbcasadi.shapes import require_name
from mbcasadi.system import System, evaluate
from mbcasadi.system.coordinates import rate_names

NLP_TOL = 1e-10
NLP_STEPS = 500
POLISHING = 10

RESTART_DISTANCES = (0.0, 0.05, 0.3)
"""Rad or m. A search that fails starts again at this distance."""


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
    """

    rested: System
    contacts: tuple[Contact, ...]
    held: int
    nu: int
    limits: Limits
    mask: Array
    equations: ca.Function

    def at(self, q: Array, y: Array | None = None) -> dict[str, Array]:
        """Return the equations' values at a pose and forces (none by default)."""
        forces = np.zeros(self.limits.G.shape[1]) if y is None else y
        return numbers(self.equations, {"q": q, "y": forces})

    def loads_at(self, q: Array) -> Loads:
        """Return the least forces that hold a pose, or come nearest to it."""
        values = self.at(q)
        return loads(values["E"], values["unbalanced"].ravel(), self.limits, self.nu)


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
        require_name("coordinate", name, names)
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
    )


def nearest_pose(at_rest: StaticEquilibrium, q0: Array, start: Array) -> tuple[Array, Loads] | None:
    """Return the pose nearest to q0 that can be held, with its forces, or None.

    An interior-point method finds it, Newton's steps of least norm close it to rounding errors.
    """
    rng = np.random.default_rng(0)
    solver, compress = _search(at_rest, q0, start)
    start_step = np.array(at_rest.rested.difference(q0, start)).ravel()
    y = at_rest.loads_at(start).y
    for size in RESTART_DISTANCES:
        guess = start_step + size * rng.standard_normal(start_step.size)
        out = solver(x0=np.concatenate([guess, y]), lbg=compress, ubg=np.zeros(compress.size))
        x = np.array(out["x"]).ravel()
        q = np.array(at_rest.rested.integrate(q0, x[: start_step.size])).ravel()
        q = _newton_refinement(at_rest, q, x[start_step.size :])
        solution = at_rest.loads_at(q)
        gap = np.abs(at_rest.at(q)["gap"]).max(initial=0.0)
        if solution.balanced and solution.feasible and gap < NLP_TOL:
            return q, solution
    return None


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
    B = rested.actuation(q)
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


def _foot(system: System, contact: Contact, q: ca.SX, q0: Array) -> ca.SX:
    """Return (3, 1) the displacement of a foot from its place at q0."""
    pose = system.frame(contact.frame, contact.kind).pose
    return ca.SX(pose(q)[0] - pose(q0)[0])


def _limits(
    system: System, contacts: Sequence[Contact], unknown: bool, ranges: Array | None
) -> Limits:
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
        axes = contact_axes(np.asarray(contact.normal, dtype=float))
        cone = np.array(pyramid_rows(contact.friction, contact.sides)) @ axes
        highest = np.inf if contact.max_force is None else contact.max_force
        for block, bound in ((cone, 0.0), (-axes[:1], -contact.min_force), (axes[:1], highest)):
            if np.isfinite(bound):
                padded = np.zeros((len(block), ny))
                padded[:, first + 3 * k : first + 3 * k + 3] = block
                rows.append(padded)
                bounds.append(np.full(len(block), bound))
    return Limits(np.vstack(rows), np.concatenate(bounds))


def _search(at_rest: StaticEquilibrium, q0: Array, start: Array) -> tuple[ca.Function, Array]:
    """Return the program `min |q ⊖ q0|²` over (dq, y), and the lower bounds of its rows.

    Redundant rows are compressed to those that are independent at `start`, `Uᵀ phi = 0`.
    """
    dq, y = ca.SX.sym("dq", at_rest.rested.nv), ca.SX.sym("y", at_rest.limits.G.shape[1])
    q = at_rest.rested.integrate(q0, dq)
    values = at_rest.equations(q=q, y=y)
    U, s, _ = np.linalg.svd(at_rest.at(start)["gap_q"], full_matrices=False)
    counting = U[:, s > 1e-7 * max(1.0, s.max(initial=0.0))]
    equal = ca.vertcat(ca.DM(counting.T) @ values["gap"], values["unbalanced"])
    over = ca.DM(at_rest.limits.G) @ y - ca.DM(at_rest.limits.d)
    low = np.concatenate([np.zeros(equal.numel()), np.full(over.numel(), -np.inf)])
    problem = {"x": ca.vertcat(dq, y), "f": ca.sumsqr(dq), "g": ca.vertcat(equal, over)}
    quiet = {"print_level": 0, "sb": "yes", "tol": NLP_TOL, "max_iter": NLP_STEPS}
    options: dict[str, Any] = {"ipopt": quiet, "print_time": False, "error_on_fail": False}
    return ca.nlpsol("rest", "ipopt", problem, options), low


def _newton_refinement(at_rest: StaticEquilibrium, q: Array, y: Array) -> Array:
    """Return the pose with its equations closed, controls at their limits held there."""
    at_limit = at_rest.limits.G @ y - at_rest.limits.d > -1e-6 * (1 + np.abs(at_rest.limits.d))
    G, nv = at_rest.limits.G[at_limit], at_rest.rested.nv
    for _ in range(POLISHING):
        value = at_rest.at(q, y)
        gap, unbalanced = value["gap"].ravel(), value["unbalanced"].ravel()
        J = np.block(
            [
                [value["gap_q"], np.zeros((gap.size, y.size))],
                [value["unbalanced_q"], -value["E"]],
                [np.zeros((len(G), nv)), G],
            ]
        )
        error = np.concatenate([gap, unbalanced, G @ y - at_rest.limits.d[at_limit]])
        step = -np.linalg.lstsq(J, error, rcond=1e-9)[0]
        q = np.array(at_rest.rested.integrate(q, step[:nv])).ravel()
        y = y + step[nv:]
    return q
