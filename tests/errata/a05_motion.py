"""A05: statements about mechanisms, control loops and simulation."""

import numpy as np

from .family import kkt
from .finding import Errors, erratum
from .mechanisms import slider_rows, two_links
from .numerics import Array, error, projector, rate
from .singular_pose import share_collapsed

ABOVE_ROUNDING = 1e-8  # of a residual whose square is still above rounding errors


@erratum("A05", "§5.4")
def particle() -> Errors:
    """printed: `m a = f∥`
    holds: `m a = f∥ - m ‖v‖²/ρ ε⊥`
    measured: difference of the two sides, `a` from the KKT equations"""
    mass, radius, theta, spin = 1.7, 0.6, 0.4, 2.0
    along = np.array([-np.sin(theta), np.cos(theta)])
    across = np.array([np.cos(theta), np.sin(theta)])
    f, v = np.array([0.8, -1.1]), radius * spin * along
    a = kkt(mass * np.eye(2), across[None, :], f, np.array([v @ v / radius]))[0]
    printed = along * (along @ f)
    return error(mass * a, printed), error(mass * a, printed - mass * (v @ v) / radius * across)


def _held_force(gain: float, integral: float, samples: int) -> float:
    """Return `|e_k| / |e_0|` of (52) for a particle held on a circle, the force fed back late.

    The particle is at rest, so its constraint force is the normal input itself.
    """
    wanted, measured, total, first = 50.0, 0.0, 0.0, 0.0
    for _ in range(samples):
        e = wanted - measured
        first = first or abs(e)
        total += integral * e
        normal = np.array([wanted + gain * e + total, 0.0])
        measured = -float(kkt(np.eye(2), np.array([[1.0, 0.0]]), normal, np.zeros(1))[1][0])
    return abs(wanted - measured) / first


@erratum("A05", "(52), sampled")
def sampled_force_loop() -> Errors:
    """printed: any gains `G_F`, `G_I > 0`
    holds: the measured force is one sample old: `G_F + G_I T/2 < 1`
    measured: |e_k / e_0| of a sampled loop: `G_F = 1.5` after 40 samples and `G_F = 1`, `G_I T
        = 0.1` after 400 (the smaller); `G_F = 0.5`, `G_I T = 0.1` after 400"""
    return min(_held_force(1.5, 0.0, 40), _held_force(1.0, 0.1, 400)), _held_force(0.5, 0.1, 400)


@erratum("A05", "§6", holds=0.0)
def projection_after_steps() -> Errors:
    """printed: correct the position after a step of the integrator
    holds: project `q` and `v` inside every stage
    measured: share of three runs through singular poses whose step falls below 1e-5 s, or whose
        integrator gives up (slider-crank in Cartesian coordinates, DOP853, rtol 1e-11,
        undisturbed steps 1e-2 s; `q` and `v` corrected after each step). In the two angles of
        §8 nothing shows: their manifold is a straight line, which a Runge-Kutta method keeps"""
    return share_collapsed(every_stage=False), share_collapsed(every_stage=True)


def _three_cranks(q: Array) -> Array:
    """Return the four rows of three equal cranks on one coupler: rank three where they hold."""
    pins = np.array([[0.0, 0], [1, 0], [2, 0]]) + np.column_stack([np.cos(q[:3]), np.sin(q[:3])])
    bar = np.array([np.cos(q[3]), np.sin(q[3])])
    return np.concatenate([pins[1] - pins[0] - bar, pins[2] - pins[0] - 2 * bar])


def _cranks_rows(q: Array) -> Array:
    """Return the Jacobian of `_three_cranks`."""
    turn = np.column_stack([-np.sin(q), np.cos(q)])
    J = np.zeros((4, 4))
    J[:2, 0] = J[2:, 0] = -turn[0]
    J[:2, 1], J[2:, 2] = turn[1], turn[2]
    J[:2, 3], J[2:, 3] = -turn[3], -2 * turn[3]
    return J


def _largest_factor(dropped: float) -> float:
    """Return the largest ‖Φ_{k+1}‖ / ‖Φ_k‖² of (39) from 40 starts, above rounding errors."""
    rng, largest = np.random.default_rng(3), 0.0
    for _ in range(40):
        q = np.append(np.full(3, rng.uniform(0.5, 2.5)), 0.0) + 1e-3 * rng.normal(size=4)
        for _ in range(6):
            before = np.linalg.norm(_three_cranks(q))
            q = q - np.linalg.pinv(_cranks_rows(q), dropped) @ _three_cranks(q)
            if before > ABOVE_ROUNDING:
                largest = max(largest, float(np.linalg.norm(_three_cranks(q)) / before**2))
    return largest


@erratum("A05", "Theorem 3", fails=1e3, holds=1e2)
def quadratic_convergence() -> Errors:
    """printed: (39) converges quadratically where `A` is nonsingular
    holds: where `A` has full row rank, or where the rank of the manifold is kept in `A⁺`
    measured: largest ‖Φ_{k+1}‖ / ‖Φ_k‖² in 40 runs of (39), three equal cranks on one coupler:
        their rows repeat each other on the manifold only, and `A⁺` inverts what is left beside
        it; singular values below 1e-2 dropped"""
    return _largest_factor(0.0), _largest_factor(1e-2)


def _folded(n: int) -> Array:
    """Return the pose of the slider-crank at `q1 = nπ/2`."""
    return np.array([n * np.pi / 2, -n * np.pi])


@erratum("A05", "(65)")
def singular_poses() -> Errors:
    """printed: singular at `q1 = nπ/2` for every n
    holds: for odd n
    measured: singular value of `A` (zero where singular): smallest for even n, largest for odd
        n"""
    sigma = {n: np.linalg.norm(slider_rows(_folded(n))) for n in range(-4, 5)}
    return min(s for n, s in sigma.items() if n % 2 == 0), max(s for n, s in sigma.items() if n % 2)


def _manipulator_inertia(c2: float) -> Array:
    """Return M of (68) for unit mass and length."""
    return np.array([[3 + 2 * c2, 1 + c2], [1 + c2, 1.0]])


@erratum("A05", "(68)")
def link_masses() -> Errors:
    """printed: `m` the mass of a link
    holds: a point mass at the end of each link
    measured: M and h against Lagrange's equations of uniform rods, and of point masses"""
    q, v = np.array([0.4, 0.9]), np.array([-0.7, 1.3])
    M = _manipulator_inertia(np.cos(q[1]))
    h = np.sin(q[1]) * np.array([-v[1] * (v[1] + 2 * v[0]), v[0] ** 2])
    h += 9.8 * np.array([np.cos(q.sum()) + 2 * np.cos(q[0]), np.cos(q.sum())])
    points, rods = two_links(uniform=False), two_links(uniform=True)
    as_printed = min(error(M, rods.M(q)), error(h, rods.bias(q, v)))
    as_corrected = max(error(M, points.M(q)), error(h, points.bias(q, v)))
    return as_printed, as_corrected


@erratum("A05", "(70), (71)")
def branches() -> Errors:
    """printed: the matrix over 5 holds where |c1| is below `ε/(l√5)`, `I` elsewhere
    holds: exchanged; the entries are right, and those of (71) belong to `M''_c`
    measured: `P` at `q1 = 0.6` and at `π/2`, and `M''_c` at 0.6, against `I - A⁺ A` (smallest
        difference as printed, largest one corrected)"""
    q1 = 0.6
    q = np.array([q1, -2 * q1])
    c2 = np.cos(q[1])
    regular = np.array([[1.0, -2.0], [-2.0, 4.0]]) / 5
    inertia = np.array([[1.0, (1 + c2) / 5], [0.0, (3 - 2 * c2) / 5]])
    P, M = projector(slider_rows(q)), _manipulator_inertia(c2)
    M_second = P @ M + np.eye(2) - P
    A_folded = np.zeros((1, 2))
    P_folded = projector(A_folded)
    as_printed = min(error(np.eye(2), P), error(regular, P_folded), error(M, M_second))
    as_corrected = max(
        error(regular, P),
        error(np.eye(2), P_folded),
        error(inertia, M_second),
        error(slider_rows(_folded(1)), A_folded),
    )
    return as_printed, as_corrected


@erratum("A05", "App. E")
def independent_coordinates() -> Errors:
    """printed: `Λ ∂θ/∂q = I`
    holds: `(∂θ/∂q) Λ = I_k`
    measured: a point on a circle, `θ` its angle: `Λ ∂θ/∂q` is 2×2 of rank one"""
    radius, theta = 0.6, np.array([0.4])

    def place(x: Array) -> Array:
        return radius * np.concatenate([np.cos(x), np.sin(x)])

    def angle(q: Array) -> Array:
        return np.array([np.arctan2(q[1], q[0])])

    Lam = rate(place, theta, np.ones(1))[:, None]
    slope = np.column_stack([rate(angle, place(theta), e / 10) * 10 for e in np.eye(2)])
    return error(Lam @ slope, np.eye(2)), error(slope @ Lam, np.eye(1))
