"""A slider-crank with an elastic connecting rod: fast vibration under a prescribed slow motion.

`q = (crank, rod, slider, q1 ... q4)`: two angles, the slider's place, the amplitudes of two
sine modes of bending, and the stretch at the middle and at the end of the rod. Three rows: the
rod ends at the slider (2), and the crank turns at a constant 150 rad/s, `phi1 = w t`.

Source: B. Simeon, *Modelling a flexible slider crank mechanism by a mixed system of DAEs and
PDEs*, Mathematical Modelling of Systems 2 (1996) 1-18; linear stiffness, no damping, no gravity.
Reference: F. Mazzia and C. Magherini, *Test Set for Initial Value Problem Solvers*, release 2.4,
University of Bari 2008, problem "Slider crank", file crank.f of 2006/10/02: q, v, a and lam at
t = 0.1 s, computed by its authors with MEBDFI at tolerances of 1e-14 in 180,090 steps.

The published file takes 8, 1, 2 for the entries of the rod's longitudinal mass matrix, where
quadratic elements have 8/15, 1/15, 2/15, and 3.1415927 for π. Both are used here as published:
the reference numbers belong to them. The published start has nine digits and violates its
constraints by 2.0e-10 m and 1.2e-8 m/s. The published solver, which solved for velocities, removed
the second by an impulse in its first step, as `start` does, and kept the first (`REFERENCE_GAP`).

You will see the distance of the state at 0.1 s from the published one, for several tolerances.
"""

import casadi as ca
import numpy as np

import mbcasadi as mb

DURATION = 0.1  # s
CRANK, ROD = 0.15, 0.30  # m
ROD_MASS, SLIDER_MASS = 0.151104, 0.075552  # kg
CRANK_INERTIA, ROD_INERTIA = 0.002727, 0.0045339259  # kg m², about the bearing and the pin
ELASTICITY, SECTION, DENSITY = 0.20e12, 0.0080, 7870.0  # N/m², m, kg/m³
SPEED = 150.0  # rad/s of the crank
PI = 3.1415927  # as published
STRETCH = 0.169327969e-4  # m, of the whole rod at the start
START_Q = (0.0, 0.0, CRANK + ROD + STRETCH, 0.0, 0.0, 0.103339863e-4, STRETCH)
START_V = (
    150.0,
    -74.9957670,
    -0.268938672e-5,
    0.444896105,
    0.463434311e-2,
    -0.178591076e-5,
    -0.268938672e-5,
)
REFERENCE_Q = (
    0.1500000000000104e2,
    -0.3311734988256260,
    0.1697373328427860,
    0.1893192899613509e-3,
    0.2375751249879174e-4,
    -0.5323896770569702e-5,
    -0.8363313279112129e-5,
)
REFERENCE_V = (
    0.1500000000000000e3,
    0.6025346755138369e2,
    -0.8753116326670527e1,
    -0.3005541400289738e-1,
    -0.5500431812571696e-2,
    0.4974111734266989e-3,
    0.1105560003626645e-2,
)
REFERENCE_A = (
    0.0,
    0.6488737541276957e4,
    0.2167938629509884e4,
    0.3391137060286523e2,
    0.1715134772216488,
    -0.1422449408912512e1,
    0.1003946428124810e1,
)
REFERENCE_GAP = 2.03e-10  # m, the published x3 - l1 cos(phi1) - (l2 + q4) cos(phi2)
REFERENCE_LAM = (-0.6232935833287916e2, -0.1637920993367306e3, 0.2529857947066878e2)


def system() -> mb.System:
    """Return the mechanism: kinetic energy of a rod whose points move by its four amplitudes."""
    q, v, t = ca.SX.sym("q", 7), ca.SX.sym("v", 7), ca.SX.sym("t")
    crank, rod, slider, y = q[0], q[1], q[2], q[3:]
    w_crank, w_rod, rate = v[0], v[1], v[3:]
    now = rod_integrals()
    c, s = ca.cos(crank - rod), ca.sin(crank - rod)
    own = CRANK_INERTIA + ROD_MASS * CRANK**2
    turning = ROD_INERTIA + y.T @ now["mass"] @ y + 2 * ca.dot(now["along_moment"], y)
    both = CRANK * ROD * ROD_MASS / 2 * c
    both += CRANK * (s * ca.dot(now["across"], y) + c * ca.dot(now["along"], y))
    shaking = CRANK * (c * now["across"] - s * now["along"])
    swaying = now["across_moment"] + now["mixed"].T @ y
    kinetic = (own * w_crank**2 + turning * w_rod**2 + SLIDER_MASS * v[2] ** 2) / 2
    kinetic += both * w_crank * w_rod + rate.T @ now["mass"] @ rate / 2
    kinetic += w_crank * ca.dot(shaking, rate) + w_rod * ca.dot(swaying, rate)
    elastic = y.T @ now["stiffness"] @ y / 2
    length = ROD + y[3]
    phi = ca.vertcat(
        CRANK * ca.sin(crank) + length * ca.sin(rod),
        slider - CRANK * ca.cos(crank) - length * ca.cos(rod),
        crank - SPEED * t,
    )
    return mb.from_lagrangian(
        q, v, kinetic=kinetic, potential=elastic, phi=phi, t=t, name="flexible_slider_crank"
    )


def rod_integrals() -> dict[str, ca.DM]:
    """Return the integrals over the rod of its shapes: two sines across, two parabolas along."""
    mass = DENSITY * SECTION**2 * ROD
    stiffness = ELASTICITY * SECTION**2 / ROD
    bending = stiffness * (SECTION / ROD) ** 2 * PI**4
    a, b = 16 / PI**3, 8 / PI**3 - 1 / PI
    return {
        "mass": mass * ca.DM([[0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 8, 1], [0, 0, 1, 2]]),
        "stiffness": ca.diagcat(
            bending / 24, bending * 2 / 3, stiffness / 3 * ca.DM([[16, -8], [-8, 7]])
        ),
        "along": mass * ca.DM([0, 0, 2 / 3, 1 / 6]),
        "across": mass * ca.DM([2 / PI, 0, 0, 0]),
        "along_moment": mass * ROD * ca.DM([0, 0, 1 / 3, 1 / 6]),
        "across_moment": mass * ROD * ca.DM([1 / PI, -0.5 / PI, 0, 0]),
        "mixed": mass
        * ca.DM([[0, 0, -a, b], [0, 0, 0, 0.5 / PI], [a, 0, 0, 0], [-b, -0.5 / PI, 0, 0]]),
    }


def start() -> tuple[np.ndarray, np.ndarray]:
    """Return the start, `v - M⁻¹ Aᵀ (A M⁻¹ Aᵀ)⁻¹ psi`: an impulse closes the constraints."""
    mechanism, q, v = system(), np.array(START_Q), np.array(START_V)
    M, A = np.array(mechanism.mass_matrix(q)), np.array(mechanism.constraint_jacobian(q, 0))
    psi = np.array(mechanism.constraint_rate(q, v, 0)).ravel()
    answer = np.linalg.solve(M, A.T)
    return q, v - answer @ np.linalg.solve(A @ answer, psi)


def simulate(rtol: float, formulation: str = "projection") -> mb.Trajectory:
    """Return the motion over 0.1 s; amplitudes of micrometres need a small absolute tolerance."""
    return mb.simulate(
        system(), *start(), DURATION, formulation,
        rtol=rtol, atol=rtol * 1e-5, times=[0.0, DURATION],
    )  # fmt: skip


def errors_of_equations() -> dict[str, float]:
    """Return how far a and lam at the published q and v are from the published, of the largest."""
    out = mb.forward_dynamics(system())(q=REFERENCE_Q, v=REFERENCE_V, f=0, t=DURATION)
    published = {"a": np.array(REFERENCE_A), "lam": -np.array(REFERENCE_LAM)}
    return {
        name: float(np.abs(np.array(out[name]).ravel() - value).max() / np.abs(value).max())
        for name, value in published.items()
    }


def errors(trajectory: mb.Trajectory) -> dict[str, float]:
    """Return the largest relative difference from the published q, v and lam at the end.

    The slider's place is compared after what `REFERENCE_GAP` says is missing.
    """
    q = np.array(REFERENCE_Q)
    q[2] -= REFERENCE_GAP
    published = {"q": q, "v": np.array(REFERENCE_V), "lam": -np.array(REFERENCE_LAM)}
    return {
        name: float(np.max(np.abs(getattr(trajectory, name)[-1] / value - 1)))
        for name, value in published.items()
    }


def main() -> dict[float, dict[str, float]]:
    """Print and return the errors for each tolerance."""
    there = errors_of_equations()
    print(f"at the published q and v: a {there['a']:.1e}, lam {there['lam']:.1e}")
    found = {}
    for rtol in (1e-6, 1e-8, 1e-10):
        trajectory = simulate(rtol)
        found[rtol] = errors(trajectory) | {"steps": trajectory.steps}
        words = ", ".join(f"{name} {error:.1e}" for name, error in errors(trajectory).items())
        print(f"rtol {rtol:.0e}: {trajectory.steps} steps; relative error of {words}")
    return found


if __name__ == "__main__":
    main()
