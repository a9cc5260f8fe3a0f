"""How large the position gain of tracking in quasi-velocities must be  [A10, eq. 43-46]."""

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.law import Array
from mbcasadi.control.laws.coordinate_check import require_coordinates
from mbcasadi.control.laws.quasi_velocity_motion import decay_rate, gain_matrix, require_plain
from mbcasadi.control.laws.task_coordinates import Coordinates
from mbcasadi.errors import ShapeError
from mbcasadi.formulation.quasi_velocity_equations import free_basis, free_basis_near
from mbcasadi.formulation.root import constraint_basis, root_factor
from mbcasadi.linalg import complete_factor
from mbcasadi.shapes import real_array, require_numbers
from mbcasadi.short_text import summarised
from mbcasadi.system import System, evaluate
from mbcasadi.system.coordinates import rates
from mbcasadi.system.parametric import at_model_values

CLOSE = 1e-9
"""Relative difference of η1 and η2 below which the bound takes its limit for equal ones."""


@summarised
@dataclass(frozen=True)
class GainCondition:
    """Constants of the convergence proof, the largest over the samples  [A10, eq. 43-46].

    Attributes:
        c_b: of `‖B_θ‖ <= c_b`.
        c_l: of `‖B_θ(θ) - B_θ(θ_d)‖ <= c_l ‖θ - θ_d‖`, from derivatives at the samples.
        c_v: of the desired quasi-velocity, `‖v_r,d‖ <= c_v`, √kg m/s.
        kp: λ_min(K_p), 1/s.
        kd: λ_min(K_d), 1/s.
    """

    c_b: float
    c_l: float
    c_v: float
    kp: float
    kd: float

    @property
    def required(self) -> float:
        """`c_l c_v`, 1/s, the lower bound of λ_min(K_p) in (46)."""
        return self.c_l * self.c_v

    @property
    def holds(self) -> bool:
        """Whether `λ_min(K_p) > c_l c_v`  [A10, eq. 46]."""
        return self.kp > self.required

    @checked
    def bound(self, t: ArrayLike, theta0: float, epsilon0: float) -> Array:
        """Return the bound of ‖θ̃(t)‖ under `quasi_velocity_tracking`  [A10, eq. 45 corrected].

        `‖θ̃0‖ e^(-η2 t) + c_b / (η2 - η1) ‖ε0‖ (e^(-η1 t) - e^(-η2 t))` with η1 = λ_min(K_d) and
        η2 = λ_min(K_p); the paper prints `c_b / (c_l c_v)` and subtracts c_l c_v from η2, which
        this law does not need (see `in_words`).

        Args:
            t: s.
            theta0: ‖θ̃(0)‖.
            epsilon0: ‖ε(0)‖.
        """
        require_numbers(theta0=theta0, epsilon0=epsilon0)
        at = real_array("t", t)
        slow, fast = np.exp(-self.kp * at), np.exp(-self.kd * at)
        if abs(self.kp - self.kd) < CLOSE * self.kp:
            return np.asarray(theta0 * slow + self.c_b * epsilon0 * at * slow)
        share = self.c_b / (self.kp - self.kd)
        return np.asarray(theta0 * slow + share * epsilon0 * (fast - slow))

    @property
    def in_words(self) -> str:
        """The finding in a few sentences."""
        verdict = "holds" if self.holds else "does not hold"
        return (
            "The law maps the desired rate at the present pose: dθ̃/dt = -K_p θ̃ + B ε, so any "
            f"K_p > 0 converges; ε decays at {self.kd:.3g} 1/s, θ̃ at {min(self.kp, self.kd):.3g} "
            "1/s in the end. With the desired quasi-velocity taken at the reference instead, "
            f"eq. 46 requires K_p > c_l c_v = {self.c_l:.3g} · {self.c_v:.3g} = "
            f"{self.required:.3g} 1/s: with K_p = {self.kp:.3g} 1/s it {verdict}. The constants "
            "are the largest at the samples, in the gauge of parallel transport; they do not "
            "hold for poses between or beyond."
        )


@checked
@at_model_values
def gain_condition(
    system: System,
    coordinates: Coordinates,
    q: ArrayLike,
    v: ArrayLike,
    *,
    kp: ArrayLike = 10.0,
    kd: ArrayLike = 20.0,
) -> GainCondition:
    """Return whether `λ_min(K_p) > c_l c_v` on samples of the motion  [A10, eq. 46].

    `B_θ(θ)`, and with it c_l, depends on the root factor `M = W Wᵀ` and on the gauge. Here W is
    that of `root_factor` (`M = Lᵀ L`), and V2 does not turn within its space (`V2ᵀ dV2 = 0`). This
    is one choice, not the one with the smallest c_l: another root can give a smaller value.

    Args:
        system: the mechanism.
        coordinates: θ.
        q: (n, nq) closed poses of the desired motion and of its neighbourhood.
        v: (n, nv) their desired velocities.
        kp, kd: as in `quasi_velocity_tracking`.

    Raises:
        ShapeError: q and v are not samples of this system.
    """
    require_coordinates(system, coordinates)
    require_plain(system)
    poses, speeds = (np.atleast_2d(real_array(n, x)) for n, x in (("q", q), ("v", v)))
    expected = ((len(poses), system.nq), (len(poses), system.nv))
    if (poses.shape, speeds.shape) != expected:
        raise ShapeError(f"q, v have shapes {poses.shape}, {speeds.shape}, expected {expected}")
    constants = _constants(system, coordinates).map(len(poses))(poses.T, speeds.T)
    B, slopes, energy = (np.array(each) for each in constants)
    return GainCondition(
        c_b=float(B.max()),
        c_l=float(slopes.max()),
        c_v=float(energy.max()),
        kp=decay_rate(gain_matrix("theta", "kp", kp, coordinates.names)),
        kd=decay_rate(gain_matrix("quasi-velocities", "kd", kd, rates(system).components)),
    )


def _constants(system: System, coordinates: Coordinates) -> ca.Function:
    """Return (q, v) → (‖B_θ‖, ‖∂B_θ/∂θ‖, ‖Wᵀ v‖); Frobenius norms, which bound spectral ones."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    V_ref, dq = ca.SX.sym("V_ref", system.nv, system.nv), ca.SX.sym("dq", system.nq)
    root = root_factor(system.mass_matrix(q))
    A = evaluate(system.loop_jacobian, {"q": q}) if system.nc else ca.SX(0, system.nv)
    rows = constraint_basis(root, A)
    V2_near = free_basis_near(rows.V1, V_ref)
    J_W = root.divide(ca.SX(coordinates.rows(q, 0)[1]).T).T
    B = ca.densify(J_W @ V2_near)
    slope = ca.Function("slope", [q, V_ref, dq], [ca.jtimes(B, q, dq)])
    V2 = free_basis(root, rows)
    B_theta = J_W @ V2
    N_v = system.velocity_map(q) @ root.divide_transposed(
        V2 @ complete_factor(B_theta).pinv_times(ca.SX.eye(len(coordinates.names)))
    )
    squares = [ca.sumsqr(slope(q, V2, N_v[:, i])) for i in range(N_v.shape[1])]
    outputs = [ca.norm_fro(B_theta), ca.sqrt(sum(squares, ca.SX(0))), ca.norm_2(root.W.T @ v)]
    return ca.Function("constants", [q, v], outputs, ["q", "v"], ["c_b", "c_l", "c_v"])
