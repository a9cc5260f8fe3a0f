"""Andrews' squeezing mechanism: seven bodies, three closed loops, 14 revolutions in 30 ms.

A motor of 0.033 N m turns the first crank; seven angles, six independent rows. This file gives the
positions of the bodies; mass matrix, forces and constraints follow from them.

Source: E. Hairer and G. Wanner, *Solving Ordinary Differential Equations II*, 2nd edition,
Springer 1996, section VII.7 ("a multibody mechanism"); after W. Schiehlen (ed.), *Multibody
Systems Handbook*, Springer 1990; also problem A03 of the IFToMM benchmark library.
Reference: F. Mazzia and C. Magherini, *Test Set for Initial Value Problem Solvers*, release 2.4,
University of Bari 2008, problem "Andrews' squeezing mechanism", file andrews.f of 2006/10/02: all
of q, v, a and lam at t = 0.03 s, computed by its authors with tolerances of 1e-14.

The published state is that of 30 ms and 1.0e-12 s: all seven angles differ from ours by the
same time. Its velocities violate the constraints by 1e-9 m/s.

You will see the distance of the state at 30 ms from the published one, for several tolerances.
"""

import casadi as ca
import numpy as np

import mbcasadi as mb

DURATION = 0.03  # s
NAMES = ("beta", "theta", "gamma", "phi", "delta", "omega", "epsilon")
START = (
    -0.0617138900142764496358948458001,
    0.0,
    0.455279819163070380255912382449,
    0.222668390165885884674473185609,
    0.487364979543842550225598953530,
    -0.222668390165885884674473185609,
    1.23054744454982119249735015568,
)  # rad; at rest
REFERENCE_Q = (
    0.1581077119629904e2,
    -0.1575637105984298e2,
    0.4082224013073101e-1,
    -0.5347301163226948,
    0.5244099658805304,
    0.5347301163226948,
    0.1048080741042263e1,
)  # rad
REFERENCE_V = (
    0.1139920302151208e4,
    -0.1424379294994111e4,
    0.1103291221937134e2,
    0.1929337464421385e2,
    0.5735699284790808,
    -0.1929337464421385e2,
    0.3231791658026955,
)  # rad/s
REFERENCE_A = (
    -0.2463176316945196e5,
    0.5185037701610329e5,
    0.3241025686413781e6,
    0.5667493645176213e6,
    0.1674362929479361e5,
    -0.5667493645176222e6,
    0.9826520791458422e4,
)  # rad/s²
REFERENCE_LAM = (
    0.1991753333731910e3,
    -0.2975531228015052e2,
    0.2306654119098399e2,
    0.3145271365475927e2,
    0.2264249232082739e2,
    0.1161740700019673e2,
)  # N; M a + ... + Gᵀ lam = f there, so the sign is turned here

MASS = (0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498)  # kg, K1 to K7
INERTIA = (2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5)  # kg m²
A, B, C = (-0.06934, -0.00227), (-0.03635, 0.03273), (0.014, 0.072)  # m, fixed points
STIFFNESS, REST_LENGTH, TORQUE = 4530.0, 0.07785, 0.033  # N/m, m, N m


def system() -> mb.System:
    """Return the mechanism, angles in the order of `NAMES`."""
    q, v = ca.SX.sym("q", 7), ca.SX.sym("v", 7)
    beta, theta, gamma, phi, delta, omega, epsilon = ca.vertsplit(q)

    def along(angle: ca.SX) -> ca.SX:
        return ca.vertcat(ca.cos(angle), ca.sin(angle))

    def across(angle: ca.SX) -> ca.SX:
        return ca.vertcat(ca.sin(angle), -ca.cos(angle))

    a, b, c = ca.DM(A), ca.DM(B), ca.DM(C)
    knee_4 = a + 0.04 * along(delta)  # K4 on K5
    knee_6 = a + 0.04 * across(epsilon)  # K6 on K7
    # where K2 ends, and with it K3, K4 and K6
    tips = (
        0.007 * along(beta) - 0.028 * along(beta + theta),
        b + 0.035 * across(gamma),
        knee_4 + 0.02 * across(phi + delta),
        knee_6 + 0.02 * along(omega + epsilon),
    )
    centres = (
        0.00092 * along(beta),
        0.007 * along(beta) - 0.0115 * along(beta + theta),
        b + 0.01874 * across(gamma) + 0.01043 * along(gamma),
        knee_4 + (0.02 - 0.01421) * across(phi + delta),
        a + 0.02308 * along(delta) + 0.00916 * across(delta),
        knee_6 + (0.02 - 0.01421) * along(omega + epsilon),
        a + 0.01228 * across(epsilon) + 0.00449 * along(epsilon),
    )
    angles = (beta, beta + theta, gamma, phi + delta, delta, omega + epsilon, epsilon)
    kinetic = sum(
        m / 2 * ca.sumsqr(ca.jtimes(centre, q, v)) + j / 2 * ca.jtimes(angle, q, v) ** 2
        for m, j, centre, angle in zip(MASS, INERTIA, centres, angles, strict=True)
    )
    hook = b + 0.018 * across(gamma) + 0.02 * along(gamma)  # of the spring on K3
    spring = STIFFNESS / 2 * (ca.norm_2(hook - c) - REST_LENGTH) ** 2
    closure = ca.vertcat(*(tips[0] - tip for tip in tips[1:]))
    motor = ca.vertcat(TORQUE, ca.SX.zeros(6))
    return mb.from_lagrangian(
        q, v, kinetic=kinetic, potential=spring, force=motor, phi=closure, name="andrews_squeezer"
    )


def simulate(rtol: float, formulation: str = "projection") -> mb.Trajectory:
    """Return the motion over 30 ms."""
    return mb.simulate(
        system(), START, np.zeros(7), DURATION, formulation, rtol=rtol, atol=rtol / 10,
        times=[0.0, DURATION],
    )  # fmt: skip


def lead(trajectory: mb.Trajectory) -> np.ndarray:
    """Return the time, s, by which each published angle is ahead of the simulated one."""
    return (np.array(REFERENCE_Q) - trajectory.q[-1]) / np.array(REFERENCE_V)


def published_residuals() -> dict[str, float]:
    """Return the residuals of the published state in our equations, with our terms.

    `rate`, m/s, of the constraints; `bend`, `A a + c` relative to c; `force`, N m, of
    `M a + h - f - Aᵀ lam`.
    """
    mechanism, a = system(), np.array(REFERENCE_A)
    rate = np.array(mechanism.constraint_rate(REFERENCE_Q, REFERENCE_V))
    A = np.array(mechanism.constraint_jacobian(REFERENCE_Q))
    c = np.array(mechanism.constraint_bias(REFERENCE_Q, REFERENCE_V)).ravel()
    inverse = mb.inverse_dynamics(mechanism)
    force = np.array(inverse(REFERENCE_Q, REFERENCE_V, a)).ravel()
    return {
        "rate": float(np.abs(rate).max()),
        "bend": float(np.abs(A @ a + c).max() / np.abs(c).max()),
        "force": float(np.abs(force + A.T @ REFERENCE_LAM).max()),
        "largest_force": float(np.abs(force).max()),
    }


def errors(trajectory: mb.Trajectory) -> dict[str, float]:
    """Return the largest relative difference from the published q, v and lam at the end."""
    published = {"q": REFERENCE_Q, "v": REFERENCE_V, "lam": -np.array(REFERENCE_LAM)}
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
    ahead = lead(trajectory)
    late = trajectory.q[-1] + np.mean(ahead) * trajectory.v[-1]
    rest = np.max(np.abs(late / np.array(REFERENCE_Q) - 1))
    print(
        f"published angles are ahead by {ahead.min():.3e} to {ahead.max():.3e} s, "
        f"{rest:.0e} is left without it"
    )
    left = published_residuals()
    print(
        f"the published state leaves {left['rate']:.1e} m/s of the constraints, {left['bend']:.1e} "
        f"of c, {left['force']:.1e} of {left['largest_force']:.1f} N m"
    )
    return found


if __name__ == "__main__":
    main()
