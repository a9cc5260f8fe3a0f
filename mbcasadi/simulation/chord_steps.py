"""Back onto the manifold by steps that share a matrix, for integrators of a fixed step.

Newton's step `q ⊕ B phi` with `B = -A⁺`, in the sizes of coordinates and residuals, leaves `g²` of
a gap g. A step with the B of a pose at a distance d leaves `g d` (a chord in place of the tangent),
and so does `v + B psi`. A matrix costs more than ten such steps.

Gaps of a Runge-Kutta step of size h are `h²` at its stages and `h⁵` at its end, which is `h³` away
from its last stage. So

    stage:  one step of q, two of v, with the B of the pose where the stage would be;
    end:    one step of q with the B of the last stage, one of q and two of v with its own,

leaves gaps of `h⁴` and slips of `h⁶` at the stages, and at the end both far below rounding.
"""

from typing import NamedTuple

import casadi as ca

from mbcasadi.linalg import Sym, kind_for, limb_factor, limbs_of, pinv
from mbcasadi.linalg.basis import drop_threshold2
from mbcasadi.linalg.symbols import named_function
from mbcasadi.simulation.active_rows import active_rows, holonomic_rows, scale_at, trusted_scale
from mbcasadi.simulation.options import EquationOptions
from mbcasadi.system import System, evaluate
from mbcasadi.system.sizes import residual_sizes

RATE_STEPS = 2
"""Steps of v with one matrix; see the head of this file."""


class Stage(NamedTuple):
    """A state on the manifold.

    Fields: `q`, `v`; `B` (nv, nc), with which its pose was closed.
    """

    q: ca.MX
    v: ca.MX
    B: ca.MX


class ChordSteps:
    """The steps of one mechanism under one mask."""

    def __init__(self, system: System, equations: EquationOptions, mask: ca.MX) -> None:
        """Build the matrices.

        Args:
            system: the mechanism.
            equations: drop rule of dependent rows.
            mask: (nc,) one for each active row, else zero.
        """
        self._system, self._mask = system, mask
        self._of_phi = matrix_fun(system, equations, of_rates=False)
        has_other_rows = _has_rows_of_rates(system)
        self._of_psi = matrix_fun(system, equations, of_rates=True) if has_other_rows else None

    def stage(self, q: ca.MX, v: ca.MX, t: ca.MX) -> Stage:
        """Return the state on the manifold next to a proposed one."""
        B = self._matrix(q, v, t)
        q = self._moved(q, t, B)
        return Stage(q, self._admissible(q, v, t, B), B)

    def end(self, q: ca.MX, v: ca.MX, t: ca.MX, last: Stage) -> tuple[ca.MX, ca.MX, ca.MX]:
        """Return q, v and the worst of phi and of psi there, next to the last stage."""
        q = self._moved(q, t, last.B)
        B = self._matrix(q, v, t)
        q = self._moved(q, t, B)
        v = self._admissible(q, v, t, B)
        residuals = (self._phi(q, t), self._psi(q, v, t))
        return q, v, ca.vertcat(*(ca.norm_inf(ca.densify(x)) for x in residuals))

    def _matrix(self, q: ca.MX, v: ca.MX, t: ca.MX) -> ca.MX:
        return self._of_phi(q, v, t, self._mask)

    def _moved(self, q: ca.MX, t: ca.MX, B: ca.MX) -> ca.MX:
        return self._system.integrate(q, B @ self._phi(q, t))

    def _admissible(self, q: ca.MX, v: ca.MX, t: ca.MX, B: ca.MX) -> ca.MX:
        if self._of_psi is not None:
            B = self._of_psi(q, v, t, self._mask)
        for _ in range(RATE_STEPS):
            v = v + B @ self._psi(q, v, t)
        return v

    def _phi(self, q: ca.MX, t: ca.MX) -> ca.MX:
        return self._mask * evaluate(self._system.constraint, {"q": q, "t": t})

    def _psi(self, q: ca.MX, v: ca.MX, t: ca.MX) -> ca.MX:
        return self._mask * evaluate(self._system.loop_rate, {"q": q, "v": v, "t": t})


def matrix_fun(system: System, equations: EquationOptions, *, of_rates: bool) -> ca.Function:
    """Return (q, v, t, mask) → (B): (nv, nc) `-A⁺` of rows in the sizes, in the system's units.

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
        A, scale = active_rows(system, at_rest, on), trusted_scale(system, equations, phi)
    inverse = _inverse(A, scale, equations.rank_tol)
    size, row_size = ca.DM(system.scales.coordinates), ca.DM(residual_sizes(system))
    B = -ca.diag(size) @ inverse @ ca.diag(1 / row_size)
    function = named_function("back_matrix", s, {"B": B})
    is_scalar = function.is_a("SXFunction")
    return function.expand(function.name(), {"cse": True}) if is_scalar else function


def _has_rows_of_rates(system: System) -> bool:
    """Return whether rows hold for velocities only."""
    holonomic = holonomic_rows(system).full().ravel() > 0
    return not all(holonomic[row] for row in system.loop_jacobian.sparsity_out("A").row())


def _inverse(A: Sym, scale: Sym | ca.DM, rank_tol: float) -> Sym:
    """Return (nv, nc) A⁺ of the rows that are not dropped."""
    if not isinstance(A, ca.SX):
        return pinv(A, row_scale=scale, rank_tol=rank_tol)
    rows = sorted(set(ca.sparsify(A).sparsity().row()))
    kept = ca.sparsify(A[rows, :])
    threshold2 = drop_threshold2(kept, scale[rows], None, rank_tol)
    inverse = ca.SX(A.shape[1], A.shape[0])
    inverse[:, rows] = limb_factor(kept, threshold2).shortest(ca.SX.eye(len(rows)))
    return inverse
