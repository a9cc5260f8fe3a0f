"""Back onto the manifold by steps that share the factors of A, for integrators of a fixed step.

Newton's step `q ⊕ (-A⁺ phi)`, in the sizes of coordinates and residuals, leaves `g²` of a gap g. A
step with the factors of A at a pose at a distance d leaves `g d` (a chord in place of the tangent),
and so does `v - A⁺ psi`. Factors cost as much as some ten such steps.

Gaps of a Runge-Kutta step of size h are `h²` at its stages and `h⁵` at its end. So

    stage:  one step of q, two of v, with the factors at the pose where the stage would be;
    end:    one step of q, then the steps of a stage from there,

leaves gaps of `h⁴` and slips of `h⁶` at the stages, and at the end both far below rounding.

A direction in which q would go too far is dropped, as in `newton_fun`, but for strong ones: v
shares the factors, and is to stay admissible where a step is long.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import casadi as ca

from mbcasadi.linalg import LimbFactor, Sym, kind_for, limb_factor, limbs_of, pinv
from mbcasadi.linalg.basis import drop_threshold2
from mbcasadi.linalg.symbols import named_function
from mbcasadi.simulation.active_rows import active_rows, holonomic_rows, scale_at, trusted_scale
from mbcasadi.simulation.options import EquationOptions
from mbcasadi.system import System, evaluate
from mbcasadi.system.closing import STRONG
from mbcasadi.system.sizes import residual_sizes

RATE_STEPS = 2
"""Steps of v with the same factors; see the module's docstring."""

Factors = tuple[ca.MX, ...]
"""What a step of any residual needs at one pose: outputs of `ChordFunctions.factors`."""


class ChordSteps:
    """The steps of one mechanism under one mask."""

    def __init__(self, system: System, equations: EquationOptions, mask: ca.MX) -> None:
        """Build the Functions of factors and of steps.

        Args:
            system: the mechanism.
            equations: drop rule of dependent rows.
            mask: (nc,) one for each active row, else zero.
        """
        self._system, self._mask = system, mask
        self._of_phi = chord_functions(system, equations, of_rates=False)
        has_other_rows = _has_rows_of_rates(system)
        self._of_psi = chord_functions(system, equations, of_rates=True) if has_other_rows else None

    def stage(self, q: ca.MX, v: ca.MX, t: ca.MX) -> tuple[ca.MX, ca.MX]:
        """Return q and v next to the manifold."""
        factors = self._factors(q, v, t)
        q = self._closed(q, t, factors)
        return q, self._admissible(q, v, t, factors)

    def end(self, q: ca.MX, v: ca.MX, t: ca.MX) -> tuple[ca.MX, ca.MX, ca.MX]:
        """Return q and v on the manifold, and the worst of phi and of psi there."""
        q = self._closed(q, t, self._factors(q, v, t))
        q, v = self.stage(q, v, t)
        residuals = (self._phi(q, t), self._psi(q, v, t))
        return q, v, ca.vertcat(*(ca.norm_inf(ca.densify(x)) for x in residuals))

    def _factors(self, q: ca.MX, v: ca.MX, t: ca.MX) -> Factors:
        return tuple(self._of_phi.factors.call([q, v, t, self._mask]))

    def _closed(self, q: ca.MX, t: ca.MX, factors: Factors) -> ca.MX:
        step = self._of_phi.step.call([*factors, self._phi(q, t)])[0]
        return self._system.integrate(q, step)

    def _admissible(self, q: ca.MX, v: ca.MX, t: ca.MX, factors: Factors) -> ca.MX:
        functions = self._of_psi or self._of_phi
        if self._of_psi is not None:
            factors = tuple(self._of_psi.factors.call([q, v, t, self._mask]))
        for _ in range(RATE_STEPS):
            v = v + functions.step.call([*factors, self._psi(q, v, t)])[0]
        return v

    def _phi(self, q: ca.MX, t: ca.MX) -> ca.MX:
        return self._mask * evaluate(self._system.constraint, {"q": q, "t": t})

    def _psi(self, q: ca.MX, v: ca.MX, t: ca.MX) -> ca.MX:
        return self._mask * evaluate(self._system.loop_rate, {"q": q, "v": v, "t": t})


class ChordFunctions(NamedTuple):
    """Two Functions.

    Fields: `factors` (q, v, t, mask) → what A is factored into; `step` (factors, residual) → (dv),
    (nv,) `-A⁺ residual` of the rows that are kept.
    """

    factors: ca.Function
    step: ca.Function


def chord_functions(
    system: System, equations: EquationOptions, *, of_rates: bool
) -> ChordFunctions:
    """Return the Functions of factors and of steps.

    Args:
        system: the mechanism.
        equations: drop rule.
        of_rates: for steps of v, with the rows that hold for velocities only and those of phi;
            else for steps of q, with those of phi.
    """
    kind = kind_for(limbs_of(system.loop_jacobian.sparsity_out("A")).operations)
    sizes = {"q": system.nq, "v": system.nv, "t": 1, "mask": system.nc}
    s = {name: kind.sym(name, size) for name, size in sizes.items()}
    phi = s["mask"] * evaluate(system.constraint, s)
    if of_rates:
        A, scale = active_rows(system, s, s["mask"]), scale_at(system, equations, phi)
    else:
        on, at_rest = s["mask"] * holonomic_rows(system), {"q": s["q"], "t": s["t"]}
        A, scale = active_rows(system, at_rest, on), trusted_scale(system, equations, phi, STRONG)
    if isinstance(A, ca.SX):
        return _by_limbs(system, s, A, scale, equations.rank_tol)
    A_pinv, residual = ca.MX.sym("A_pinv", system.nv, system.nc), ca.MX.sym("residual", system.nc)
    dv = _in_units(system, lambda b: A_pinv @ b, residual)
    return ChordFunctions(
        named_function(
            "factors", s, {"A_pinv": pinv(A, row_scale=scale, rank_tol=equations.rank_tol)}
        ),
        named_function("step_back", {"A_pinv": A_pinv, "residual": residual}, {"dv": dv}),
    )


def _by_limbs(
    system: System,
    s: Mapping[str, ca.SX],
    A: ca.SX,
    scale: ca.SX | ca.DM,
    rank_tol: float,
) -> ChordFunctions:
    """Return the Functions as scalars, without the rows that have no entries."""
    A = ca.sparsify(A)
    rows = sorted(set(A.sparsity().row()))
    A = A[rows, :]
    made = limb_factor(A, drop_threshold2(A, scale[rows], None, rank_tol))
    parts = {name: part for name, part in made._asdict().items() if name != "null"}
    factors = ca.Function(
        "factors", list(s.values()), list(parts.values()), list(s), list(parts), {"cse": True}
    )
    held = {name: ca.SX.sym(name, part.sparsity()) for name, part in parts.items()}
    factor = LimbFactor(**held, null=ca.SX(0, len(rows)))
    residual = ca.SX.sym("residual", system.nc)
    dv = _in_units(system, lambda b: factor.shortest(b[rows]), residual)
    step = named_function("step_back", held | {"residual": residual}, {"dv": dv})
    return ChordFunctions(factors, step)


def _in_units(system: System, shortest: Callable[[Sym], Sym], residual: Sym) -> Sym:
    """Return `-A⁺ residual` in the units of the system, from that in sizes."""
    size, row_size = ca.DM(system.scales.coordinates), ca.DM(residual_sizes(system))
    return ca.densify(-size * shortest(residual / row_size))


def _has_rows_of_rates(system: System) -> bool:
    """Return whether rows hold for velocities only."""
    holonomic = holonomic_rows(system).full().ravel() > 0
    return not all(holonomic[row] for row in system.loop_jacobian.sparsity_out("A").row())
