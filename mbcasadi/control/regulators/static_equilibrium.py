"""Equations of a mechanism at rest, and the search for the nearest pose that can be held.

    phi(q) = 0,   h - f_passive - f_0 = B u + Aᵀ lam

Standing feet are three rows each, `p(q) - p(q_0) = 0`, whose multipliers are the forces on them
in world axes; held coordinates are rows without a multiplier.
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

START_AGAIN = (0.0, 0.05, 0.3)
"""Rad or m. A search that fails starts again at this distance."""


@dataclass(frozen=True)
class StaticEquilibrium:
    """A mechanism at rest, as numbers at a pose.

    Attributes:
        rested: the mechanism with standing feet and held coordinates as further rows.
        contacts: the feet.
        held: number of held coordinates, the last rows.
        nu: number of controls that are unknown; zero where they are given.
        limits: of `y = (u, lam, contact forces)`.
        mask: (nc,) rows that are on, of `rested`.
        equations: (q, y) → (gap, left, E, gap_q, left_q), tangent derivatives along q.
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
        now = self.at(q)
        return loads(now["E"], now["left"].ravel(), self.limits, self.nu)


def at_rest(
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
        q0: (nq,) pose where the feet stand and whose held coordinates are kept.
        held: names of held coordinates.
        contacts: standing feet.
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
    away = system.difference(q0, q)
    fixed = ca.vertcat(ca.SX(0, 1), *(away[names.index(name)] for name in held))
    rows = ca.vertcat(ca.SX(0, 1), *feet, fixed)
    rested = system.constrained(q, v, phi=rows) if rows.numel() else system
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


def nearest(now: StaticEquilibrium, q0: Array, start: Array) -> tuple[Array, Loads] | None:
    """Return the pose nearest to q0 that can be held, with its forces, or None.

    An interior-point method finds it, Newton's steps of least norm close it to rounding errors.
    """
    rng = np.random.default_rng(0)
    solver, compress = _search(now, q0, start)
    first = np.array(now.rested.difference(q0, start)).ravel()
    y = now.loads_at(start).y
    for size in START_AGAIN:
        guess = first + size * rng.standard_normal(first.size)
        out = solver(x0=np.concatenate([guess, y]), lbg=compress, ubg=np.zeros(compress.size))
        x = np.array(out["x"]).ravel()
        q = np.array(now.rested.integrate(q0, x[: first.size])).ravel()
        q = _polished(now, q, x[first.size :])
        found = now.loads_at(q)
        gap = np.abs(now.at(q)["gap"]).max(initial=0.0)
        if found.balanced and found.within and gap < NLP_TOL:
            return q, found
    return None


def _equations(
    rested: System, q: ca.SX, mask: Array, pushing: int, control: Array | None
) -> ca.Function:
    """Return (q, y) → (gap, left, E, gap_q, left_q), `left = h - f_passive - f_0 - E y`."""
    rest = ca.SX.zeros(rested.nv)
    at: dict[str, Any] = {"q": q, "v": rest}
    none = rested.nc == 0
    phi = ca.SX(0, 1) if none else ca.DM(mask) * evaluate(rested.constraint, at)
    A = ca.SX(0, rested.nv) if none else ca.diag(ca.DM(mask)) @ evaluate(rested.loop_jacobian, at)
    weight = rested.bias_force(q, rest) - rested.passive_force(q, rest)
    weight = weight - rested.actuator_bias(q, rest)
    B = rested.actuation(q)
    if control is not None:
        weight, B = weight - B @ ca.DM(control), ca.SX(rested.nv, 0)
    E = ca.densify(ca.horzcat(B, A[:pushing, :].T))
    y = ca.SX.sym("y", E.shape[1])
    left, N = weight - E @ y, rested.velocity_map(q)
    outputs = [phi, left, E, ca.jacobian(phi, q) @ N, ca.jacobian(left, q) @ N]
    return ca.Function(
        "at_rest",
        [q, y],
        [ca.densify(x) for x in outputs],
        ["q", "y"],
        ["gap", "left", "E", "gap_q", "left_q"],
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
        most = np.inf if contact.max_force is None else contact.max_force
        for block, bound in ((cone, 0.0), (-axes[:1], -contact.min_force), (axes[:1], most)):
            if np.isfinite(bound):
                wide = np.zeros((len(block), ny))
                wide[:, first + 3 * k : first + 3 * k + 3] = block
                rows.append(wide)
                bounds.append(np.full(len(block), bound))
    return Limits(np.vstack(rows), np.concatenate(bounds))


def _search(now: StaticEquilibrium, q0: Array, start: Array) -> tuple[ca.Function, Array]:
    """Return the program `min |q ⊖ q0|²` over (dq, y), and the lower bounds of its rows.

    Redundant rows are compressed to those that are independent at `start`, `Uᵀ phi = 0`.
    """
    dq, y = ca.SX.sym("dq", now.rested.nv), ca.SX.sym("y", now.limits.G.shape[1])
    q = now.rested.integrate(q0, dq)
    values = now.equations(q=q, y=y)
    U, s, _ = np.linalg.svd(now.at(start)["gap_q"], full_matrices=False)
    counting = U[:, s > 1e-7 * max(1.0, s.max(initial=0.0))]
    equal = ca.vertcat(ca.DM(counting.T) @ values["gap"], values["left"])
    over = ca.DM(now.limits.G) @ y - ca.DM(now.limits.d)
    low = np.concatenate([np.zeros(equal.numel()), np.full(over.numel(), -np.inf)])
    problem = {"x": ca.vertcat(dq, y), "f": ca.sumsqr(dq), "g": ca.vertcat(equal, over)}
    quiet = {"print_level": 0, "sb": "yes", "tol": NLP_TOL, "max_iter": NLP_STEPS}
    options: dict[str, Any] = {"ipopt": quiet, "print_time": False, "error_on_fail": False}
    return ca.nlpsol("rest", "ipopt", problem, options), low


def _polished(now: StaticEquilibrium, q: Array, y: Array) -> Array:
    """Return the pose with its equations closed, controls at their limits held there."""
    at_limit = now.limits.G @ y - now.limits.d > -1e-6 * (1 + np.abs(now.limits.d))
    G, nv = now.limits.G[at_limit], now.rested.nv
    for _ in range(POLISHING):
        value = now.at(q, y)
        gap, left = value["gap"].ravel(), value["left"].ravel()
        J = np.block(
            [
                [value["gap_q"], np.zeros((gap.size, y.size))],
                [value["left_q"], -value["E"]],
                [np.zeros((len(G), nv)), G],
            ]
        )
        error = np.concatenate([gap, left, G @ y - now.limits.d[at_limit]])
        step = -np.linalg.lstsq(J, error, rcond=1e-9)[0]
        q = np.array(now.rested.integrate(q, step[:nv])).ravel()
        y = y + step[nv:]
    return q
