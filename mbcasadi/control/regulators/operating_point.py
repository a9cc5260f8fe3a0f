"""The operating point of a linearisation: motion and rows there, with their derivatives."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.dynamics.forward import forward_dynamics_derivatives
from mbcasadi.dynamics.terms import Treatment
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column
from mbcasadi.simulation.active_rows import holonomic_rows
from mbcasadi.system import System, evaluate
from mbcasadi.system.pulling_inputs import pulling_inputs

Array = NDArray[np.float64]

INSIDE = 1e-9
"""Difference of an actuator force and its linear law, relative to them, that counts as clipped."""


@dataclass(frozen=True)
class Place:
    """The operating point of a mechanism.

    Attributes:
        q, v, u: (nq,), (nv,), (nu,).
        t: s, where constraints depend on time.
        mask: (nc,) one for each row that is on, else zero.
        act: (na,) activation states.
    """

    q: Array
    v: Array
    u: Array
    t: float
    mask: Array
    act: Array

    @property
    def values(self) -> dict[str, Array | float]:
        """All inputs by their name."""
        state: dict[str, Array | float] = {"q": self.q, "v": self.v, "u": self.u, "act": self.act}
        return state | {"t": self.t, "mask": self.mask}


def place_of(
    system: System,
    q: ArrayLike,
    v: ArrayLike | None = None,
    u: ArrayLike | None = None,
    t: float = 0.0,
    mask: ArrayLike | None = None,
    act: ArrayLike | None = None,
) -> Place:
    """Return the checked operating point.

    Args:
        system: the mechanism.
        q, v, u: (nq,), (nv,), (nu,); v and u are zero by default.
        t: s, for constraints that depend on time.
        mask: (nc,) rows that are on; the system's own by default.
        act: (na,) activation states, zero by default.

    Raises:
        ShapeError: a wrong shape, or NaN.
        ProblemError: a mask for a system without one.
    """
    if mask is not None and system.mask is None:
        raise ProblemError(f"'{system.name}' has no mask; make it with system.with_mask()")
    rows_on = mask if mask is not None else system.mask
    return Place(
        q=column("q", q, system.nq),
        v=_or_zero("v", v, system.nv),
        u=_or_zero("u", u, system.nu),
        t=float(t),
        mask=np.ones(system.nc) if rows_on is None else column("mask", rows_on, system.nc),
        act=_or_zero("act", act, system.na),
    )


def numbers(function: ca.Function, values: Mapping[str, Array | float]) -> dict[str, Array]:
    """Return the outputs of a Function by name, from a mapping that holds its inputs."""
    out = function(**{name: values[name] for name in function.name_in()})
    return {name: np.array(value) for name, value in out.items()}


@lru_cache(maxsize=32)
def rows_fun(system: System) -> ca.Function:
    """Return (q, v, t, mask) → (phi, psi, A, psi_q, moving, of_phi): the constraints.

    `psi_q` (nc, nv) is the tangent derivative of psi along q; `moving` (nc, nv) is `Ȧ` along v
    at constant v; `of_phi` (nc, 1) is one for rows that hold for positions too. Rows that the
    mask switches off are zero throughout.
    """
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    t, mask = ca.SX.sym("t"), ca.SX.sym("mask", system.nc)
    at = {"q": q, "v": v, "t": t}
    N = system.velocity_map(q)
    if system.nc:
        phi, psi = evaluate(system.constraint, at), evaluate(system.loop_rate, at)
        A = evaluate(system.loop_jacobian, at)
    else:
        phi, psi, A = ca.SX(0, 1), ca.SX(0, 1), ca.SX(0, system.nv)
    moving = ca.SX(ca.jtimes(A, q, N @ v)) + ca.SX(ca.jtimes(A, t, ca.SX(1)))
    outputs = {
        "phi": mask * phi,
        "psi": mask * psi,
        "A": ca.diag(mask) @ A,
        "psi_q": ca.diag(mask) @ ca.jacobian(psi, q) @ N,
        "moving": ca.diag(mask) @ moving,
        "of_phi": mask * holonomic_rows(system),
    }
    return ca.Function(
        "rows",
        [q, v, t, mask],
        [ca.densify(x) for x in outputs.values()],
        ["q", "v", "t", "mask"],
        list(outputs),
        {"cse": True},
    )


@lru_cache(maxsize=32)
def motion_fun(system: System, rank_tol: float) -> ca.Function:
    """Return (q, v, u, act, t, mask) → (a, a_q, a_v, a_u, a_act, lam, …, clip).

    The motion under `B w + f_0`, w the activation where there is one, else u. `lam, lam_q, …` are
    the multipliers and their derivatives. `a_q` and `lam_q` are tangent derivatives; all of them
    follow the implicit rules of `dynamics.derivatives`. `clip` is the difference of the actuators'
    real force and `B w + f_0`, relative to the larger one. `rate, rate_q, …` are the rates of the
    activations.
    """
    dynamics = forward_dynamics_derivatives(system, treatment=Treatment(rank_tol=rank_tol))
    kind = {"q": system.nq, "v": system.nv, "u": system.nu, "act": system.na}
    kind |= {"t": 1, "mask": system.nc}
    s = {name: ca.MX.sym(name, size) for name, size in kind.items()}
    pull = _actuators_fun(system)(**{name: s[name] for name in ("q", "v", "u", "act")})
    inputs = s | {"f": pull["f"]}
    d = dynamics(**{name: inputs[name] for name in dynamics.name_in()})
    outputs = {}
    for key in ("a", "lam"):
        outputs[key] = d[key]
        for x in ("q", "v", "u", "act"):
            through_force = d[f"d{key}df"] @ pull[f"f_{x}"]
            direct = d[f"d{key}d{x}"] + through_force if x in ("q", "v") else through_force
            outputs[f"{key}_{x}"] = direct
    outputs |= {name: value for name, value in pull.items() if not name.startswith("f")}
    return ca.Function(
        "motion", list(s.values()), [ca.densify(x) for x in outputs.values()], list(s), [*outputs]
    )


def require_no_activations(system: System, what: str) -> None:
    """Raise `ProblemError` where a system has activation states."""
    if system.na:
        raise ProblemError(
            f"'{system.name}' has {system.na} activation states, which {what} does not count; "
            "expected motors and servos, or lqr, feedback and linear_mpc at an equilibrium"
        )


def require_linear(system: System, place: Place, clip: Array) -> None:
    """Raise unless the actuators' force and the rates of activations follow u.

    Raises:
        ProblemError: u is outside a range; a small change of it then has no effect.
    """
    stateful = np.array([actuator.act is not None for actuator in system.actuators], dtype=bool)
    low, high = system.limits.ctrl.T
    rounding = INSIDE * np.maximum(1.0, np.abs(place.u))
    beyond = (place.u < low - rounding) | (place.u > high + rounding)
    if float(clip.max(initial=0.0)) > INSIDE or (stateful.size and np.any(beyond & stateful)):
        raise ProblemError(
            f"'{system.name}': u = {place.u} is beyond the range of a control or of a force, "
            "where the force does not follow u; expected a control inside its ranges"
        )


def _actuators_fun(system: System) -> ca.Function:
    """Return (q, v, u, act) → (f, f_q, …, rate, rate_q, …, clip), tangent derivatives along q.

    `f = B w + f_0`; `rate` are the rates of the activations. `clip` compares forces as torques, in
    the sizes of the coordinates.
    """
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    u, act = ca.SX.sym("u", system.nu), ca.SX.sym("act", system.na)
    at, N = {"q": q, "v": v, "u": u, "act": act}, system.velocity_map(q)
    w = pulling_inputs(system, q, v, u, act)
    f = evaluate(system.actuation, at) @ w + system.actuator_bias(q, v)
    rate = evaluate(system.act_dot, at) if system.na else ca.SX(0, 1)
    clip: ca.SX | ca.DM = ca.SX(0)
    if system.nu:
        real, size = evaluate(system.actuator_force, at), system.scales.coordinates
        terms = ca.fmax(ca.norm_inf(ca.densify(size * real)), ca.norm_inf(ca.densify(size * f)))
        clip = ca.norm_inf(ca.densify(size * (real - f))) / ca.fmax(terms, np.finfo(float).tiny)
    outputs = {"clip": clip}
    for name, value in (("f", f), ("rate", rate)):
        outputs |= {name: value, f"{name}_q": ca.jacobian(value, q) @ N}
        outputs |= {f"{name}_{key}": ca.jacobian(value, at[key]) for key in ("v", "u", "act")}
    dense = [ca.densify(x) for x in outputs.values()]
    return ca.Function("actuators", list(at.values()), dense, list(at), [*outputs])


def _or_zero(name: str, value: ArrayLike | None, size: int) -> Array:
    return np.zeros(size) if value is None else column(name, value, size)
