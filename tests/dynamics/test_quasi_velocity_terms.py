"""Quasi-velocities of whole mechanisms: laws, forward dynamics, the state-space form."""

import functools

import casadi as ca
import numpy as np
import pytest
from support.admissible_states import admissible_states
from support.constrained_mechanisms import mechanism

import mbcasadi as mb
from mbcasadi.dynamics.quasi_velocity_functions import quasi_velocity_motion, quasi_velocity_terms
from mbcasadi.errors import UnknownNameError, UnsupportedFeatureError

AGREEMENT = 1e-9  # relative to the largest entry; M has a condition of 1e3 and more
STEP = 1e-5
DIFFERENCE = 1e-6  # step² times third derivatives of these mechanisms
STATES = 3
NAMES = ("four_bar", "chained_particles", "rolling_disc", "double_pendulum")


@functools.cache
def terms_of(name, root="cholesky"):
    return quasi_velocity_terms(mechanism(name).system, root=root)


def states(name):
    found = admissible_states(mechanism(name), 50)
    return [{key: values[:, k] for key, values in found.items()} for k in range(STATES)]


def call(function, **values):
    """Return the outputs of a Function, given those of the values that it takes."""
    out = function(**{name: values[name] for name in function.name_in()})
    return {key: np.array(value) for key, value in out.items()}


def cases(*large):
    """Return mechanisms with both roots, those that take long with the triangular one only."""
    roots = ("cholesky", "symmetric")
    small = [(name, root) for name in NAMES for root in roots]
    return [*small, *((name, "cholesky") for name in ("ball_loop", *large))]


@pytest.mark.parametrize(("name", "root"), cases("standing_quadruped", "switched_particles"))
@pytest.mark.every(3)
def test_terms_obey_their_laws_and_give_the_multipliers_of_forward_dynamics(name, root):
    system = mechanism(name).system
    forward = mb.forward_dynamics(system, "lagrange", derivatives=False)
    for state in states(name):
        t = call(terms_of(name, root), **state)
        expected = call(forward, **state)
        v, M = state["v"], system.mass_matrix(state["q"]).full()
        energy = v @ M @ v
        np.testing.assert_allclose(t["W"] @ t["W"].T, M, atol=AGREEMENT * np.abs(M).max())
        assert np.sum(t["v_bar"] ** 2) == pytest.approx(energy, rel=1e-10)
        assert np.sum(t["v_r"] ** 2) == pytest.approx(energy, rel=1e-10)
        for key in ("Gamma", "Gamma_r"):
            size = np.abs(t["Gamma"]).max()
            assert (size > 0.0) == ("particles" not in name)  # their M is constant
            np.testing.assert_allclose(t[key] + t[key].T, 0.0, atol=AGREEMENT * size)
        np.testing.assert_allclose(t["v_o"], 0.0, atol=AGREEMENT * np.sqrt(energy))
        scale = 1.0 + np.abs(expected["lam"]).max(initial=0.0)
        np.testing.assert_allclose(t["lam"], expected["lam"], atol=AGREEMENT * scale)


@pytest.mark.parametrize(("name", "root"), cases("standing_quadruped"))
@pytest.mark.every(3)
def test_state_space_form_moves_as_forward_dynamics_does(name, root):
    """`q̇` is `N v`, and the rate of the velocity `N⁺ q̇(q, v_r)` along the motion is a."""
    system = mechanism(name).system
    motion = quasi_velocity_motion(system, root=root)
    forward = mb.forward_dynamics(system, "lagrange", derivatives=False)
    one, other = states(name)[:2]
    for state, elsewhere in ((one, one), (one, other)):
        t = call(terms_of(name, root), **state)
        # Only away from the reference does the basis turn within the free directions.
        at = state | {"v_r": t["v_r"], "V_ref": call(terms_of(name, root), **elsewhere)["V2"]}
        V2 = call(motion, **at)["V2"]
        at["v_r"] = V2.T @ t["v_bar"]
        np.testing.assert_allclose(V2 @ V2.T, t["V2"] @ t["V2"].T, atol=1e-11)
        if elsewhere is one:
            np.testing.assert_allclose(V2, t["V2"], atol=1e-11)
        now = call(motion, **at)
        rate = system.velocity_map(state["q"]).full() @ state["v"]
        size = 1.0 + np.abs(rate).max()
        np.testing.assert_allclose(now["dq"].ravel(), rate, atol=AGREEMENT * size)

        def velocity(time, at=at, now=now):
            q = at["q"] + time * now["dq"].ravel()
            moved = at | {"q": q, "v_r": at["v_r"] + time * now["dv_r"]}
            N = system.velocity_map(q).full()
            return np.linalg.lstsq(N, call(motion, **moved)["dq"].ravel(), rcond=None)[0]

        a = (velocity(STEP) - velocity(-STEP)) / (2 * STEP)
        expected = call(forward, **state)["a"].ravel()
        np.testing.assert_allclose(a, expected, atol=DIFFERENCE * (1.0 + np.abs(expected).max()))


UNDAMPED_LOOP = """
<mujoco>
  <option gravity="1 -2 -9"/>
  <default><joint type="ball"/></default>
  <worldbody>
    <body><joint/><geom type="capsule" size=".05" fromto="0 0 0 .5 0 0" mass="1.3"/>
      <body pos=".5 0 0" euler="0 0 90"><joint stiffness="2"/>
        <geom type="box" size=".25 .03 .05" pos=".25 0 0" mass=".7"/>
        <site name="tip" pos=".5 0 0"/></body></body>
    <site name="post" pos=".5 .5 0"/>
  </worldbody>
  <equality><connect site1="tip" site2="post"/></equality>
</mujoco>"""


def test_energy_and_closure_are_kept_by_the_state_space_form_alone():
    """`‖v_r‖²/2 + V` is constant; by a method of fourth order, so half a step leaves 1/16."""
    system = mb.read_mjcf(UNDAMPED_LOOP)
    q, nv = system.tree.q0, system.nv
    A = system.constraint_jacobian(q).full()
    v = (np.eye(nv) - np.linalg.pinv(A) @ A) @ np.random.default_rng(7).standard_normal(nv)
    start = call(quasi_velocity_terms(system), q=q, v=v, f=np.zeros(nv))
    motion = quasi_velocity_motion(system)
    coarse, fine = (drift(system, motion, start, count) for count in (40, 80))
    assert coarse.min() > 1e-10  # before asserting that it falls: it is there
    assert np.all(fine < coarse / 10.0)
    assert fine.max() < 1e-4


def drift(system, motion, start, count, duration=0.5):
    """Return what a number of steps of equal length lose of energy, J, and closure, m."""
    path = runge_kutta(motion, duration / count).mapaccum("path", count, 3)
    q0, v0 = system.tree.q0, ca.DM(start["v_r"])
    q, v_r = (column[:, -1] for column in path(q0, v0, start["V2"])[:2])
    losses = ca.sumsqr(v_r) / 2 + system.potential_energy(q)
    losses -= ca.sumsqr(v0) / 2 + system.potential_energy(q0)
    return np.array([abs(float(losses)), float(ca.norm_inf(system.constraint(q)))])


def runge_kutta(motion, h):
    """Return one step (q, v_r, V_ref) → the same, which takes its first basis as reference."""
    q, v_r, V_ref, force = (ca.MX.sym(motion.name_in(i), *motion.size_in(i)) for i in (0, 1, 3, 2))
    V2 = motion(q, v_r, 0 * force, V_ref)[2]

    def rate(dq, dv):
        return motion(q + dq, v_r + dv, ca.DM.zeros(v_r.shape), V2)[:2]

    k1 = rate(0, 0)
    k2 = rate(*(h / 2 * k for k in k1))
    k3 = rate(*(h / 2 * k for k in k2))
    k4 = rate(*(h * k for k in k3))
    dq, dv = (h / 6 * (a + 2 * b + 2 * c + d) for a, b, c, d in zip(k1, k2, k3, k4, strict=True))
    return ca.Function("step", [q, v_r, V_ref], [q + dq, v_r + dv, V2])


def printed_coriolis_term(system, q, v):
    """Return Γ as A10 prints it, `W⁻¹ (Ẇ - ∂v̄ᵀ/∂q)` (eq. 7b), and v̄; for q̇ = v only."""
    M = ca.densify(system.mass_matrix(q))
    W = ca.chol(M).T
    Wdot = ca.jtimes(W, q, v)
    slope = ca.jacobian(W.T @ v, q).T  # rows: derivative of v̄ᵀ by one coordinate
    return ca.solve(W, Wdot - slope), W.T @ v


def curl_of_root(system, q, v):
    """Return `R_ij = Σ_k (∂W_ij/∂q_k - ∂W_kj/∂q_i) v_k`  [A10, eq. 14]."""
    W = ca.chol(ca.densify(system.mass_matrix(q))).T
    n = system.nv
    slope = [[ca.gradient(W[i, j], q) for j in range(n)] for i in range(n)]
    terms = [
        [sum((slope[i][j][k] - slope[k][j][i]) * v[k] for k in range(n)) for j in range(n)]
        for i in range(n)
    ]
    return ca.vertcat(*[ca.horzcat(*row) for row in terms])


def test_the_printed_coriolis_term_moves_the_same_and_is_not_skew():
    """[A10, eq. 7b] against the corrected one, for the lower triangular root."""
    system = mechanism("double_pendulum").system
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    printed, v_bar = printed_coriolis_term(system, q, v)
    W = ca.chol(ca.densify(system.mass_matrix(q))).T
    C = system.coriolis_matrix(q, v)
    ours = ca.solve(W, C - W @ ca.jtimes(W, q, v).T) @ ca.inv(W.T)
    f = ca.Function("f", [q, v], [printed, ours, v_bar, W @ printed, curl_of_root(system, q, v)])
    for state in states("double_pendulum"):
        one, two, quasi, R, curl = (x.full() for x in f(state["q"], state["v"]))
        np.testing.assert_allclose(R, curl, atol=1e-12 * np.abs(R).max())
        np.testing.assert_allclose(one @ quasi, two @ quasi, atol=1e-11 * np.abs(one).max())
        np.testing.assert_allclose(two + two.T, 0.0, atol=1e-11 * np.abs(two).max())
        assert np.abs(one + one.T).max() > 0.05 * np.abs(one).max()


@pytest.mark.parametrize("name", ["moving_pendulum", "knife_edge", "climbing_particle"])
@pytest.mark.parametrize("build", [quasi_velocity_terms, quasi_velocity_motion])
def test_rows_with_more_than_a_velocity_are_refused_and_pointed_to_the_formulation(name, build):
    with pytest.raises(UnsupportedFeatureError, match=r"not A\(q\) v = 0.*forward_dynamics"):
        build(mechanism(name).system)


def test_a_singular_inertia_and_an_unknown_root_are_refused():
    with pytest.raises(UnsupportedFeatureError, match=r"positive definite M.*'lagrange'"):
        quasi_velocity_terms(mechanism("euler_parameters").system)
    with pytest.raises(UnknownNameError, match="unknown root 'qr'; valid: 'cholesky'"):
        quasi_velocity_terms(mechanism("four_bar").system, root="qr")
