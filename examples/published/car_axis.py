"""The car axis: a bar on two springs over a bumpy road, held by constraints that move.

The left wheel is fixed, the right one runs over bumps, `y_b = r sin(w t)`, `x_b = sqrt(L² - y_b²)`.
The chassis is a bar of length L with its mass at both ends. A suspension keeps its left end in
the line across the axle: `x_b x_l + y_b y_l = 0`, a rheonomic constraint. The masses are 0.5 g
where the springs have 1 N/m: hence fast oscillations.

Source: S. Schneider, *Intégration de systèmes d'équations différentielles raides et
différentielles-algébriques par des méthodes de collocations et méthodes générales linéaires*,
University of Geneva 1994; problem "Car axis" of the test set.
Reference: F. Mazzia and C. Magherini, *Test Set for Initial Value Problem Solvers*, release 2.4,
University of Bari 2008: all ten components at t = 3 s, computed by its authors with GAMD in
quadruple precision.

You will see the distance of the state at 3 s from the published one, for several tolerances.
"""

import casadi as ca
import numpy as np

import mbcasadi as mb

DURATION = 3.0  # s
NAMES = ("x_l", "y_l", "x_r", "y_r")
LENGTH, REST_LENGTH = 1.0, 0.5  # m, of the bar and of the springs
MASS = 10 * 1e-2**2 / 2  # M ε² / 2 at each end, kg
GRAVITY = 1.0  # m/s²
HEIGHT, FREQUENCY = 0.1, 10.0  # m, rad/s of the road
START_Q = (0.0, 0.5, 1.0, 0.5)  # m
START_V = (-0.5, 0.0, -0.5, 0.0)  # m/s
REFERENCE_Q = (
    0.493455784275402809122e-1,
    0.496989460230171153861,
    0.104174252488542151681e1,
    0.373911027265361256927,
)
REFERENCE_V = (
    -0.770583684040972357970e-1,
    0.744686658723778553466e-2,
    0.175568157537232222276e-1,
    0.770341043779251976443,
)
REFERENCE_LAM = (-0.473688659084893324729e-2, -0.110468033125734368808e-2)  # sign of f + Gᵀ lam


def axle(t: ca.SX) -> ca.SX:
    """Return where the right wheel is."""
    height = HEIGHT * ca.sin(FREQUENCY * t)
    return ca.vertcat(ca.sqrt(LENGTH**2 - height**2), height)


def system() -> mb.System:
    """Return the chassis (x_l, y_l, x_r, y_r); its right spring is `right_spring`."""
    q, v, t = ca.SX.sym("q", 4), ca.SX.sym("v", 4), ca.SX.sym("t")
    left, right = q[:2], q[2:]
    spring = (ca.norm_2(left) - REST_LENGTH) ** 2 / 2  # 1 N/m
    weight = MASS * GRAVITY * (q[1] + q[3])
    phi = ca.vertcat(ca.dot(axle(t), left), ca.sumsqr(left - right) - LENGTH**2)
    kinetic = MASS / 2 * ca.sumsqr(v)
    return mb.from_lagrangian(
        q, v, kinetic=kinetic, potential=spring + weight, phi=phi, t=t, name="car_axis"
    )


def right_spring() -> ca.Function:
    """Return (t, q, v) → (f), the spring between the right wheel and the bar's right end."""
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 4), ca.SX.sym("v", 4)
    energy = (ca.norm_2(q[2:] - axle(t)) - REST_LENGTH) ** 2 / 2
    return ca.Function("right_spring", [t, q, v], [-ca.gradient(energy, q)], ["t", "q", "v"], ["f"])


def simulate(rtol: float, formulation: str = "projection") -> mb.Trajectory:
    """Return the motion over 3 s."""
    return mb.simulate(
        system(), START_Q, START_V, DURATION, formulation, force=right_spring(),
        rtol=rtol, atol=rtol / 10, times=[0.0, DURATION],
    )  # fmt: skip


def errors(trajectory: mb.Trajectory) -> dict[str, float]:
    """Return the largest difference from the published q, v and lam at the end, each relative."""
    published = {"q": REFERENCE_Q, "v": REFERENCE_V, "lam": REFERENCE_LAM}
    return {
        name: float(np.max(np.abs(getattr(trajectory, name)[-1] / value - 1)))
        for name, value in published.items()
    }


def main() -> dict[float, dict[str, float]]:
    """Print and return the errors for each tolerance."""
    found = {}
    for rtol in (1e-8, 1e-10, 1e-12):
        trajectory = simulate(rtol)
        found[rtol] = errors(trajectory) | {"steps": trajectory.steps}
        words = ", ".join(f"{name} {error:.1e}" for name, error in errors(trajectory).items())
        print(f"rtol {rtol:.0e}: {trajectory.steps} steps; relative error of {words}")
    return found


if __name__ == "__main__":
    main()
