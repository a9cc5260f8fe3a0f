"""A10's motion by the least quasi-force, in all units, and with gains that are matrices."""

import casadi as ca
import numpy as np
import pytest
from a10_motions import (
    K_D,
    K_P,
    STRONG,
    coordinates_of,
    length_of_error,
    papers_reference,
    run_of,
    states,
    swing_of,
    system_of,
    theta_of,
)
from numpy.testing import assert_allclose

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi.control.laws import (
    ForceGains,
    LawOptions,
    composite_error,
    function_coordinates,
    quasi_velocity_force,
    quasi_velocity_tracking,
    within_limits,
)

EXACT = 1e-7  # of forces of order 100
TO_MM = np.array([1e3, 1, 1])


def limits(system):
    return {"options": LawOptions(ctrl_limits=np.tile([-STRONG, STRONG], (system.nu, 1)))}


def terms_of(system, q, v):
    """M, `g - f_passive`, A, `Ȧ v` and `C v` at a state, by NumPy."""
    gravity = system.gravity_force(q).full().ravel()
    h = system.bias_force(q, v).full().ravel()
    return (
        system.mass_matrix(q).full(),
        gravity - system.passive_force(q, v).full().ravel(),
        system.constraint_jacobian(q).full(),
        system.constraint_bias(q, v).full().ravel(),
        h - gravity,
    )


def least_control(M, static, A, B, f, rank_tol=1e-9):
    """`arg min (B u - static)ᵀ M⁻¹ (B u - static)` of the u that move as f does, by SVD."""
    Z = np.linalg.svd(A)[2][np.linalg.matrix_rank(A, rank_tol) :].T
    G = Z @ np.linalg.solve(Z.T @ M @ Z, Z.T)
    moving, W = G @ B, np.linalg.cholesky(M)
    u = np.linalg.pinv(moving, rank_tol) @ (G @ f)
    size = np.linalg.svd(moving)
    idle = size[2][np.sum(size[1] > rank_tol * size[1][0]) :].T
    reach = np.linalg.solve(W, B @ idle)
    return u - idle @ np.linalg.lstsq(reach, np.linalg.solve(W, B @ u - static), rcond=1e-9)[0]


def in_millimetres(system):
    """The arm with its slide in mm, force in mN: the same mechanism."""
    p, w, S = ca.SX.sym("p", 3), ca.SX.sym("w", 3), ca.diag([1e-3, 1, 1])
    q, v = S @ p, S @ w
    M, h = S @ system.mass_matrix(q) @ S, S @ system.bias_force(q, v)
    other = mb.from_equations(p, w, M=M, h=h, B=S, phi=system.constraint(q))
    return other, function_coordinates(other, ca.Function("theta", [p], [theta_of(q)]))


def test_without_force_control_u_o_vanishes_and_the_force_is_the_published_one():
    """A10, section 5, figure 3: 10.77 N on the path at t = 0, elbow above the base."""
    system, theta = system_of("twin"), coordinates_of("twin")
    law = quasi_velocity_tracking(system, theta, kp=K_P, kd=K_D, **limits(system))
    ref = papers_reference(law, 0.0)
    q2 = np.arccos(0.5 - np.sin(np.pi / 12))
    q = np.array([np.cos(np.pi / 12) - np.sin(q2), q2, np.pi / 12 + 1.5 * np.pi - q2])
    rows = np.vstack([system.constraint_jacobian(q).full(), theta.rows(q, 0)[1].full()])
    v = np.linalg.solve(rows, [0, *ref[law.reference_slices["theta.v"]]])
    M, static, A, c, coriolis = terms_of(system, q, v)
    u = law.function(q, v, ref, [])[0].full().ravel()
    normal = np.linalg.solve(M, A[0])
    assert normal @ (u - static) == pytest.approx(0, abs=1e-10)  # u_o
    lam = (c[0] + normal @ (u - static - coriolis)) / (normal @ A[0])
    assert lam == pytest.approx(10.77, abs=0.005)


@pytest.mark.parametrize(
    ("name", "motors"),
    [("five_bar", 0), ("five_bar", 2), ("planar_3rrr", 0), ("prr_arm", 0), ("prr_arm", 2)],
)
@pytest.mark.every(4)
def test_u_is_the_least_quasi_force_that_the_actuators_can_make(name, motors):
    system, theta = system_of(name), coordinates_of(name)
    B = np.array(system.actuation(system.tree.q0))
    if motors:  # two more: one that repeats another, and one across the others
        B = np.column_stack([B, B[:, :1], np.linspace(-1, 2, system.nv)])
    law, full = (driven_by(system, theta, each) for each in (B, np.eye(system.nv)))
    rng = np.random.default_rng(4)
    for place, speed in zip(*states(system, 3, seed=4), strict=True):
        ref = rng.standard_normal(3 * len(theta.names))
        u, _, status, *_ = law.function(place, speed, ref, [])
        f = full.function(place, speed, ref, [])[0].full().ravel()
        M, static, A, *_ = terms_of(system, place, speed)
        expected = B @ least_control(M, static, A, B, f)
        assert_allclose(B @ u.full().ravel(), expected, atol=EXACT * (1 + abs(f).max()))
        assert status == 0


def test_where_no_actuator_reaches_the_motion_the_missing_force_is_reported():
    system, theta = system_of("twin"), coordinates_of("twin")
    law, full = (driven_by(system, theta, B) for B in ([[0], [1], [0]], np.eye(3)))
    for place, speed in zip(*states(system, 3, seed=2), strict=True):
        u, _, status, _, missing = law.function(place, speed, np.ones(6), [])
        f = full.function(place, speed, np.ones(6), [])[0].full().ravel()
        assert status == 2
        M, _, A, *_ = terms_of(system, place, speed)
        Z = np.linalg.svd(A)[2][1:].T
        gap = f - np.array([0, float(u), 0]) - missing.full().ravel()
        assert_allclose(Z.T @ gap, 0, atol=EXACT)
        G = Z @ np.linalg.solve(Z.T @ M @ Z, Z.T)
        assert G[1] @ missing.full().ravel() == pytest.approx(0, abs=EXACT)  # u is the nearest


def test_beside_a_force_the_rest_is_the_least_quasi_force():
    """With one controlled row of two motors too many, in metres and in millimetres."""
    arm, p = system_of("twin"), (ca.SX.sym("p", 3), ca.SX.sym("w", 3))
    pairs = [(arm, coordinates_of("twin")), in_millimetres(arm)]
    laws = [
        quasi_velocity_force(
            system.with_rows(*p, phi=2 * system.constraint(p[0])), theta,
            gains=ForceGains(rows=("phi0.0",)), kp=K_P, kd=K_D, **limits(system),
        )
        for system, theta in pairs
    ]  # fmt: skip
    q, v = (x[0] for x in states(arm, 1, seed=3))
    ref = [*np.linspace(-1, 1, 6), 30.0]
    u = laws[0].function(q, v, ref, [])[0].full()
    u_mm = laws[1].function(TO_MM * q, TO_MM * v, ref, [])[0].full()
    assert_allclose(u_mm, u, rtol=EXACT, atol=EXACT)


def test_gains_that_are_matrices_keep_both_equations_of_the_error():
    """`dθ̃/dt = -K_p θ̃ + B ε`, and ‖ε‖ within `exp(-λ t)` for both eigenvalues of V2ᵀ K_d V2."""
    system, theta = system_of("twin"), coordinates_of("twin")
    kp, kd = np.array([[4.0, 1.5], [1.5, 2.0]]), np.diag([6.0, 4.0, 5.0])
    kd[0, 2] = kd[2, 0] = 1.5
    law = quasi_velocity_tracking(system, theta, kp=kp, kd=kd, **limits(system))
    slow, fast = np.linalg.eigvalsh(kd)[[0, -1]]
    q, v = (x[0] for x in states(system, 1, seed=6))
    start = np.array(theta.theta(q)).ravel()
    run = run_of(system, law, q, v, 0.6, swing_of(law, start + np.array([0.1, -0.2])))
    epsilon = composite_error(system, theta, kp=kp)
    size = np.array(
        [float(ca.norm_2(epsilon(q, v, ref))) for q, v, ref in zip(*run[1:], strict=True)]
    )
    assert size[0] > 1.0
    assert np.all(size <= size[0] * np.exp(-slow * run[0]) * (1 + 1e-6))
    assert np.all(size >= size[0] * np.exp(-fast * run[0]) * (1 - 1e-6))
    plain = length_of_error(system, theta, run)
    assert np.abs(plain / size - 1).max() > 1e-2  # K_p's other entries count
    for q, v, ref in zip(*run[1:], strict=True):
        J = theta.rows(q, 0)[1].full()
        bar = np.array(epsilon(q, v, ref)).ravel()  # V2 ε in the root M = Lᵀ L
        L = np.linalg.cholesky(system.mass_matrix(q).full()[::-1, ::-1])[::-1, ::-1].T
        error = np.array(theta.theta(q)).ravel() - ref[:2]
        rate = J @ v - ref[2:4]
        assert_allclose(rate, -kp @ error + J @ np.linalg.solve(L, bar), atol=1e-9)


def test_gains_and_norms_that_do_not_fit_are_refused():
    system, theta = system_of("twin"), coordinates_of("twin")
    with pytest.raises(err.ProblemError, match=r"kp has shape \(3, 3\), expected a number"):
        quasi_velocity_tracking(system, theta, kp=np.eye(3))
    with pytest.raises(err.ProblemError, match="kd has the eigenvalue -1"):
        quasi_velocity_tracking(system, theta, kd=np.diag([1.0, 2.0, -1.0]))
    with pytest.raises(err.ProblemError, match="kp is not symmetric"):
        quasi_velocity_tracking(system, theta, kp=[[1.0, 0.5], [0.0, 1.0]])
    for build in (quasi_velocity_tracking, quasi_velocity_force):
        with pytest.raises(err.ProblemError, match=r"least = 'torque'; expected.*'quasi_force'"):
            build(system, theta, least="torque")


def test_rows_that_do_not_allow_rest_are_refused_however_they_are_given():
    system, theta = system_of("twin"), coordinates_of("twin")
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    quasi_velocity_tracking(system.with_rows(q, v, phi=2 * system.constraint(q)), theta)
    moving = system.with_rows(q, v, psi=v[0] - 1)
    alone = mb.from_equations(q, v, M=np.eye(3), h=np.zeros(3), B=np.eye(3), psi=v[0] - 1)
    for wrong in (moving, alone):
        with pytest.raises(err.UnsupportedFeatureError, match="rows that are not"):
            quasi_velocity_tracking(wrong, function_coordinates(wrong, theta.theta))


def test_limits_leave_the_motion_where_another_control_has_it():
    """The arm has one force without motion, along Aᵀ: the step along it that limits ask for."""
    system, theta = system_of("twin"), coordinates_of("twin")
    free = quasi_velocity_tracking(system, theta, kp=K_P, kd=K_D, **limits(system))
    q, v = (x[0] for x in states(system, 1, seed=6))
    ref = free.reference(theta_q=np.array(theta.theta(q)).ravel())
    u = free.function(q, 0 * v, ref, [])[0].full().ravel()
    normal = system.constraint_jacobian(q).full().ravel()
    bound = np.abs(u) * [0.9, np.inf, np.inf]
    bound[1] = np.abs(u[1] - 0.2 * u[0] * normal[1] / normal[0])  # stricter, or out of the way
    tight = np.column_stack([-bound, bound])
    law = quasi_velocity_tracking(
        system, theta, kp=K_P, kd=K_D, options=LawOptions(ctrl_limits=tight)
    )
    found, _, status, flags, _ = law.function(q, 0 * v, ref, [])
    along = np.linspace(-1, 1, 2_000_001) * np.abs(u).max()
    inside = np.all(np.abs(u[:, None] + normal[:, None] * along) <= bound[:, None], axis=0)
    least = along[inside][np.abs(along[inside]).argmin()]
    assert abs(least) > 1
    assert_allclose(found.full().ravel(), u + normal * least, atol=1e-3)  # of the grid
    assert (status, flags) == (0, 0)
    fd = mb.forward_dynamics(system, derivatives=False)
    assert_allclose(fd(q, 0 * v, found)[0].full(), fd(q, 0 * v, u)[0].full(), atol=EXACT)


def test_where_no_control_within_limits_has_the_motion_u_is_clipped():
    system, theta = system_of("twin"), coordinates_of("twin")
    weak = np.tile([-1.0, 1.0], (3, 1))
    law = quasi_velocity_tracking(
        system, theta, kp=K_P, kd=K_D, options=LawOptions(ctrl_limits=weak)
    )
    q, v = (x[0] for x in states(system, 1, seed=6))
    u, _, status, flags, _ = law.function(q, v, law.reference(theta_q=[3.0, 3.0]), [])
    assert (status, flags) == (1, 1)
    assert np.all(np.abs(u.full()) <= 1.0)
    limited = within_limits(law)
    assert limited.function(q, v, law.reference(theta_q=[3.0, 3.0]), limited.controller.z0)[2] == 1


def driven_by(system, theta, B):
    """Return the same mechanism with other actuators, its θ, and the law of A10 for it."""
    q, v = ca.SX.sym("q", system.nv), ca.SX.sym("v", system.nv)
    parts = {"M": system.mass_matrix(q), "h": system.bias_force(q, v), "phi": system.constraint(q)}
    other = mb.from_equations(q, v, **parts, force=system.passive_force(q, v), B=B)
    same = function_coordinates(other, theta.theta)
    return quasi_velocity_tracking(other, same, kp=K_P, kd=K_D, **limits(other))
