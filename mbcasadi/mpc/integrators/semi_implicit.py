"""A semi-implicit step on the constraint manifold, with multipliers: one acceleration a period.

    M a + h = f⁺ + Aᵀ lam,    A a + c + A v / h + γ phi / h² = 0,
    v⁺ = v + h a,    q⁺ = q ⊕ h v⁺

Forces of springs, dampers and servos are those at the end of the step, along the lengths that they
act on at its start: with their slopes k and d, `f⁺ = f(q, v, u) - Σ Jᵀ (k h J v⁺ + d h J a)`. What
they hold is stable however stiff it is and however long the step. All other forces are those at the
start: gravity compensation, a medium's, gains that depend on the motion, forces of equations.

Rows that a mask closes are closed in one step: the velocity that leaves them is gone, as by an
inelastic impact, and a share γ of the distance is taken back in each step. The multipliers are
forces, those of an impact over the period too.
"""

from dataclasses import dataclass
from typing import Literal

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.description import Baumgarte
from mbcasadi.dynamics import forward_dynamics, forward_dynamics_derivatives
from mbcasadi.dynamics.terms import Treatment
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.integrators.manifold_step import (
    force_fun,
    require_no_activation,
    step_symbols,
)
from mbcasadi.shapes import real_array, require_positive
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.system.over_steps import over_steps
from mbcasadi.system.parametric import takes_parameters


@summarised
@dataclass(frozen=True, kw_only=True)
class SemiImplicitStep:
    """One semi-implicit step a period, for optimal control of large mechanisms and contacts.

    It is of first order, and needs one factorisation of the constraints where a Runge-Kutta step
    with its way back to the manifold needs many. Springs, dampers and servos of a model may be as
    stiff as they are.

    Attributes:
        decay: share of the distance of a row that is taken back in a step, from 0 to 1: one number,
            or one for each row (nc,).
        forces: where those of springs, dampers and servos are taken: at the "end" of a step or at
            its "start".

    Raises:
        ProblemError: no share.
    """

    decay: float | tuple[float, ...] = 0.3
    forces: Literal["end", "start"] = "end"

    def __post_init__(self) -> None:
        require_fields(self)
        shares = real_array("decay", self.decay)
        if not np.all((shares >= 0) & (shares <= 1)):
            raise ProblemError(f"decay = {self.decay}; expected shares from 0 to 1")

    @checked
    def treatment(self, period: float | None) -> Treatment:
        """Return how rows are treated in a period, s; with None, by rates of a step.

        Raises:
            ProblemError: a period that is not positive.
        """
        period = 1.0 if period is None else period
        require_positive(period=period)
        beta = np.sqrt(real_array("decay", self.decay)) / period
        rates = Baumgarte(0.5 / period, tuple(beta) if beta.ndim else float(beta))
        return Treatment(baumgarte=rates, compact=True)

    @checked
    def system(self, system: System, period: float | None) -> System:
        """Return the system whose dynamics are those over a step of a period, s.

        With None for the period its dynamics have the length of the step as their input `step`.

        Raises:
            ProblemError: a period that is not positive, or activation states.
        """
        if period is not None:
            require_positive(period=period)
        require_no_activation(system)
        length = None if period is None else float(period)
        return over_steps(system, length, forces=self.forces == "end")


@takes_parameters
def motion_fun(system: System, treatment: Treatment, *, disturbed: bool = False) -> ca.Function:
    """Return (q, v, u, [t], [mask], [step], [d]) → (a, lam), the motion under `B u + f_0 + d`.

    Nothing is clipped. Of a system over steps the forces are those at the end. The force d (nv,)
    is an input where the motion is `disturbed`.
    """
    s, motion = _symbols(system, disturbed), forward_dynamics(system, treatment=treatment)
    force = force_fun(system)
    f = force(*(s[name] for name in force.name_in()))
    given = s | {"f": f + s.get("d", 0)}
    found = motion(**{name: given[name] for name in motion.name_in()})
    return ca.Function("motion", [*s.values()], [found["a"], found["lam"]], [*s], ["a", "lam"])


def _symbols(system: System, disturbed: bool) -> dict[str, ca.MX]:
    """Return symbols of q, v, u, [t], [mask], [step], [d]."""
    step = {"step": ca.MX.sym("step")} if system.step_is_input else {}
    d = {"d": ca.MX.sym("d", system.nv)} if disturbed else {}
    return step_symbols(system, ca.MX) | step | d


def semi_implicit_fun(system: System, period: float | None, motion: ca.Function) -> ca.Function:
    """Return (x, u, p) → (x_next) with `x = (q, v)`, `p = ([p], [t], [mask], [step], [d])`.

    Args:
        system: the mechanism.
        period: length of the step, s; None where it is the input `step` of the motion.
        motion: (q, v, u, [p], [t], [mask], [step], [d]) → (a, lam).
    """
    x, u = ca.MX.sym("x", system.nq + system.nv), ca.MX.sym("u", system.nu)
    state = ("q", "v", "u")
    sizes = {name: motion.size1_in(name) for name in motion.name_in() if name not in state}
    p = ca.MX.sym("p", sum(sizes.values()))
    ends = np.cumsum([0, *sizes.values()]).tolist()
    further = dict(zip(sizes, ca.vertsplit(p, ends), strict=True)) if sizes else {}
    q, v = x[: system.nq], x[system.nq :]
    h = further["step"] if period is None else period
    v_next = v + h * motion(q=q, v=v, u=u, **further)["a"]
    moved = moved_fun(system)
    x_next = ca.vertcat(moved(q, h * v_next), v_next)
    return ca.Function("dynamics", [x, u, p], [x_next], ["x", "u", "p"], ["x_next"])


def moved_fun(system: System) -> ca.Function:
    """Return (q, dq) → `q ⊕ dq`."""
    q, dq = ca.SX.sym("q", system.nq), ca.SX.sym("dq", system.nv)
    return ca.Function("moved", [q, dq], [system.integrate(q, dq)])


def rotations_of(system: System) -> tuple[int, ...]:
    """Return the first of the three rates of each rotation."""
    if system.tree is None:
        return ()
    first = {"ball": 0, "free": 3}
    return tuple(j.dof + first[j.kind] for j in system.tree.joints if j.kind in first)


def turned(rate: ca.SX, period: ca.SX | float) -> tuple[ca.SX, ca.SX]:
    """Return (Phi, Gamma) of a rotation over a step, (3, 3): `δ⁺ = Phi δ + Gamma δω`.

    A rotation R goes to `R Exp(h ω)`, errors are rotated vectors in its own axes: Phi is
    `Exp(-h ω)`, Gamma h times the right Jacobian of Exp at h ω.
    """
    phi = period * rate
    angle2 = ca.sumsqr(phi)
    small = angle2 < SMALL_ANGLE**2
    safe = ca.if_else(small, 1.0, angle2)
    angle, K = ca.sqrt(safe), ca.skew(phi)
    first = ca.if_else(small, 1 - angle2 / 6, ca.sin(angle) / angle)
    second = ca.if_else(small, 0.5 - angle2 / 24, (1 - ca.cos(angle)) / safe)
    third = ca.if_else(small, 1 / 6 - angle2 / 120, (angle - ca.sin(angle)) / (safe * angle))
    eye = ca.SX.eye(3)
    return eye - first * K + second * K @ K, period * (eye - second * K + third * K @ K)


SMALL_ANGLE = 1e-3
"""rad, below which the series of the functions of an angle are exact to rounding."""


@takes_parameters
def derivatives_fun(
    system: System, treatment: Treatment, *, disturbed: bool = False
) -> ca.Function:
    """Return (q, v, u, [t], [mask], [step], [d]) → (a, lam, derivatives by tangent, v, u).

    The outputs are `a, lam`, (nv,), (nc,), and `a_q, a_v, a_u, lam_q, lam_v, lam_u`.
    """
    derivatives = forward_dynamics_derivatives(system, treatment=treatment)
    s = _symbols(system, disturbed)
    force = _force_derivatives_fun(system)
    f, *by_state = force(*(s[name] for name in force.name_in()))
    given = s | {"f": f + s.get("d", 0)}
    found = derivatives(**{name: given[name] for name in derivatives.name_in()})
    results = {"a": found["a"], "lam": found["lam"]}
    for key in ("a", "lam"):
        by_q, by_v, by_u = (found[f"d{key}df"] @ part for part in by_state)
        results[f"{key}_q"] = found[f"d{key}dq"] + by_q
        results[f"{key}_v"] = found[f"d{key}dv"] + by_v
        results[f"{key}_u"] = by_u
    return ca.Function("derivatives", [*s.values()], [*results.values()], [*s], [*results])


def _force_derivatives_fun(system: System) -> ca.Function:
    """Return (q, v, u, [step]) → (f, f_q, f_v, f_u), by q along tangents."""
    force = force_fun(system)
    inputs, names = force.sx_in(), force.name_in()
    f, (q, v, u) = force(*inputs), inputs[:3]
    along = ca.jacobian(f, q) @ system.velocity_map(q)
    outputs = [f, along, ca.jacobian(f, v), ca.jacobian(f, u)]
    return ca.Function("force", inputs, outputs, names, ["f", "f_q", "f_v", "f_u"])
