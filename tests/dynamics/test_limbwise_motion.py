"""Robots that stand: the motion limb by limb against singular values and against 50 digits."""

import functools

import casadi as ca
import mpmath
import mujoco
import numpy as np
import pytest
from support.constrained_mechanisms import FEET, SOLES, read, standing
from support.motion_references import solve

import mbcasadi as mb
from mbcasadi.dynamics.terms import terms_fun
from mbcasadi.formulation import limbwise

TOL = 1e-10  # relative; conditions are below 1e4
KNEES = [9, 12, 15, 18]  # places in q of the quadruped


@functools.cache
def humanoid():
    """Return the humanoid with four points of each sole held: 24 rows of rank 12."""
    return read(standing("humanoid", SOLES))[0]


@functools.cache
def quadruped():
    return read(standing("quadruped", FEET))[0]


def on_its_feet(system, rng):
    """Return a state in which no row has a gap, and a force."""
    q = np.array(system.tree.q0).ravel()
    assert np.abs(system.constraint(q).full()).max() < 1e-9
    A = system.constraint_jacobian(q).full()
    v = rng.standard_normal(system.nv)
    return q, v - np.linalg.pinv(A, 1e-8) @ A @ v, 10 * rng.standard_normal(system.nv)


def reference(system, q, v, f, on=None):
    at = {key: x.full() for key, x in terms_fun(system)(q=q, v=v).items()}
    on = np.ones(system.nc) if on is None else on
    A, c = on[:, None] * at["A"], on * at["c"].ravel()
    rank = np.linalg.matrix_rank(A, 1e-8)
    return solve(at["M"][None], at["h"].T, f[None], A[None], c[None]), rank


def assert_equal_motion(found, expected):
    for key in ("a", "f_c", "lam"):
        value = np.array(found[key]).ravel()
        size = np.abs(getattr(expected, key)).max(initial=1.0)
        np.testing.assert_allclose(value, getattr(expected, key)[0], atol=TOL * size, err_msg=key)


def test_a_row_without_entries_carries_nothing_and_costs_nothing():
    """The rows of a planar loop across its plane; c may contradict them."""
    rng = np.random.default_rng(4)
    rows = np.array([[True, True, False], [False, False, False], [True, True, True]])
    pattern = ca.Sparsity.triplet(3, 3, *(index.tolist() for index in np.nonzero(rows)))
    with_row, without = ca.SX.sym("A", pattern), ca.SX.sym("A", pattern.sub([0, 2], range(3))[0])
    functions = []
    for A in (with_row, without):
        M, h, c = ca.SX.sym("M", 3, 3), ca.SX.sym("h", 3), ca.SX.sym("c", A.shape[0])
        motion = limbwise(M, h, ca.SX(3, 1), A, c, row_scale=ca.DM.ones(A.shape[0]))
        functions.append(ca.Function("motion", [M, h, A, c], [motion.a, motion.lam]))
    root = rng.standard_normal((3, 3))
    M, h, A, c = (
        root @ root.T,
        rng.standard_normal(3),
        rng.standard_normal((3, 3)) * rows,
        np.ones(3),
    )
    a, lam = (x.full().ravel() for x in functions[0](M, h, ca.project(ca.DM(A), pattern), c))
    kkt = np.block([[M, -A[[0, 2]].T], [A[[0, 2]], np.zeros((2, 2))]])
    expected = np.linalg.solve(kkt, np.concatenate([-h, -c[[0, 2]]]))
    np.testing.assert_allclose(np.concatenate([a, lam[[0, 2]]]), expected, atol=1e-12)
    assert lam[1] == 0
    assert functions[0].n_instructions() <= functions[1].n_instructions() + 3  # inputs and outputs


def test_two_flat_feet_of_four_points_have_twelve_rows_and_multipliers_of_least_norm():
    system, rng = humanoid(), np.random.default_rng(11)
    motion = mb.forward_dynamics(system, derivatives=False)
    for _ in range(5):
        q, v, f = on_its_feet(system, rng)
        expected, rank = reference(system, q, v, f)
        assert (system.nc, rank) == (24, 12)
        assert_equal_motion(motion(q=q, v=v, f=f), expected)


@pytest.mark.long
def test_every_mask_of_the_points_of_two_soles_has_its_motion():
    system, rng = humanoid(), np.random.default_rng(12)
    motion = mb.forward_dynamics(system.with_mask(), derivatives=False)
    ranks = set()
    shares = np.linspace(0, 1, 12)
    masks = [*(rng.random((12, 24)) < shares[:, None]), np.arange(24) < 12, np.arange(24) % 12 < 6]
    for on in np.array(masks, dtype=float):
        q, v, f = on_its_feet(system, rng)
        expected, rank = reference(system, q, v, f, on)
        found = motion(q=q, v=v, f=f, mask=on)
        assert_equal_motion(found, expected)
        assert not np.any(np.array(found["lam"]).ravel()[on == 0])
        ranks.add(int(rank))
    assert {0, 6, 12} <= ranks


@pytest.mark.long
def test_standing_robots_take_the_operations_of_their_limbs():
    """In front are the operations of M, h, A and c; a dense solve takes 5 nv³/3 and more."""
    counts = {}
    for name, system in (("quadruped", quadruped()), ("humanoid", humanoid())):
        count = mb.forward_dynamics(system).expand().n_instructions()
        counts[name] = count - terms_fun(system).n_instructions()
    assert counts["quadruped"] < 16_500
    assert counts["humanoid"] < 24_000


@functools.cache
def of_matrices():
    """Return (M, h, f, A, c) → (a, f_c, lam) with the patterns of the quadruped."""
    pattern = terms_fun(quadruped())
    symbols = {key: ca.SX.sym(key, pattern.sparsity_out(key)) for key in ("M", "h", "A", "c")}
    symbols |= {"f": ca.SX.sym("f", quadruped().nv)}
    motion = limbwise(**symbols)
    return ca.Function("motion", [*symbols.values()], list(motion), [*symbols], ["a", "f_c", "lam"])


def in_many_digits(M, h, f, A, c):
    """Return a and lam of `M a - Aᵀ lam = f - h`, `A a = -c` with independent rows."""
    nv, nc = A.shape[1], A.shape[0]
    with mpmath.workdps(50):
        K = mpmath.matrix(nv + nc)
        K[:nv, :nv] = mpmath.matrix(M.tolist())
        K[:nv, nv:] = -mpmath.matrix(A.T.tolist())
        K[nv:, :nv] = mpmath.matrix(A.tolist())
        x = mpmath.lu_solve(K, mpmath.matrix([*(f - h), *(-c)]))
    values = np.array([float(entry) for entry in x])
    return values[:nv], values[nv:]


def with_bent_knees(angles):
    """Return M, h, f, A, c of the quadruped with legs that point in different directions."""
    system, rng = quadruped(), np.random.default_rng(13)
    q = np.array(system.tree.q0).ravel()
    q[7:] = 0.6 * rng.standard_normal(12)
    q[KNEES] = angles
    v = rng.standard_normal(system.nv)
    at = {key: x.full() for key, x in terms_fun(system)(q=q, v=v).items()}
    vectors = {"h": at["h"].ravel(), "c": at["c"].ravel(), "f": rng.standard_normal(system.nv)}
    return {"M": at["M"], "A": at["A"]} | vectors


@pytest.mark.parametrize("decade", range(17))
@pytest.mark.every(6)
def test_legs_from_bent_to_straight_keep_all_digits(decade):
    """The smallest singular value of a leg's Jacobian goes with the knee from 1 to 0."""
    for angles in (np.full(4, 10.0**-decade), 10.0 ** -np.array([decade, 0, 16, 8]), np.zeros(4)):
        values = with_bent_knees(angles)
        legs = [values["A"][3 * k : 3 * k + 3, 6 + 3 * k : 9 + 3 * k] for k in range(4)]
        weakest = min(np.linalg.svd(leg, compute_uv=False)[-1] for leg in legs)
        assert weakest < 0.3 * np.min(angles) + 1e-16
        a, lam = in_many_digits(**values)
        found = of_matrices()(**values)
        np.testing.assert_allclose(found["a"], a[:, None], atol=1e-11 * np.abs(a).max())
        np.testing.assert_allclose(found["lam"], lam[:, None], atol=1e-11 * np.abs(lam).max())
        rows = values["A"] @ found["a"].full().ravel() + values["c"]
        np.testing.assert_allclose(rows, 0, atol=1e-13 * np.abs(a).max())


def test_four_straight_legs_side_by_side_hold_the_trunk_by_three_forces_along_them():
    """Twelve rows of rank eleven: what is redundant joins all four legs through the trunk."""
    system = quadruped()
    q = np.array(system.tree.q0).ravel()
    q[7:] = 0.0
    for k in range(4):  # the foot straight below the axis of the hip
        _, y, z = system.constraint_jacobian(q).full()[3 * k : 3 * k + 3, 6 + 3 * k]
        q[7 + 3 * k] = -np.arctan(z / y)
    rng = np.random.default_rng(14)
    v = rng.standard_normal(system.nv)
    f = rng.standard_normal(system.nv)
    expected, rank = reference(system, q, v, f)
    assert rank == 11
    at = {key: x.full() for key, x in terms_fun(system)(q=q, v=v).items()}
    assert np.linalg.matrix_rank(np.vstack([at["A"].T, at["c"].T])) == 12  # rows contradict
    assert_equal_motion(of_matrices()(**at, f=f), expected)


@pytest.mark.parametrize(("angle", "lifted"), [(0.4, 0), (0.0, 0), (0.4, 2)])
def test_derivatives_through_the_scalars_are_those_of_differences(angle, lifted):
    """At straight legs and beside lifted ones, whose rows are zero, too."""
    values = with_bent_knees(np.full(4, angle))
    values["A"][: 3 * lifted], values["c"][: 3 * lifted] = 0, 0
    motion, rng = of_matrices(), np.random.default_rng(17)
    pattern = motion.sparsity_in("A")
    direction = rng.standard_normal(values["A"].shape) * (np.array(ca.DM(pattern, 1)) != 0)
    direction[: 3 * lifted] = 0
    symbols = motion.mx_in()
    a, place = motion.call(symbols)[0], motion.name_in().index("A")
    seed = ca.project(ca.DM(direction), pattern)
    slope = ca.Function(
        "slope", symbols, [ca.jtimes(a, symbols[place], seed)], motion.name_in(), ["s"]
    )
    step = 1e-5  # differences of fourth order
    expected = sum(
        weight * motion(**(values | {"A": values["A"] + k * step * direction}))["a"].full()
        for k, weight in {-2: 1, -1: -8, 1: 8, 2: -1}.items()
    ) / (12 * step)
    found = slope(**values)["s"].full()
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())


def test_units_of_length_change_no_rank_and_no_motion():
    """Lengths of rows are those of the kinetic energy: a metre or a millimetre, they are alike."""
    values = with_bent_knees(np.zeros(4))
    size = np.array([1e3] * 3 + [1.0] * 15)  # translations of the trunk in mm, rows as they are
    in_mm = values | {"M": values["M"] / np.outer(size, size), "A": values["A"] / size}
    in_mm |= {key: values[key] / size for key in ("h", "f")}
    a, found = (np.array(of_matrices()(**x)["a"]).ravel() for x in (values, in_mm))
    np.testing.assert_allclose(found / size, a, atol=1e-10 * np.abs(a).max())


@functools.cache
def with_crossed_legs():
    """Return the quadruped on its hind feet, the fore feet tied to each other twice over."""
    spec = standing("quadruped", {foot: FEET[foot] for foot in ("RL_foot", "RR_foot")})
    for other in ("FR_foot", "FR_calf"):
        tied = spec.add_equality()
        tied.type, tied.objtype = mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtObj.mjOBJ_BODY
        tied.name1, tied.name2 = "FL_foot", other
    return read(spec)[0]


@pytest.mark.parametrize("masked", [False, True])
def test_a_loop_through_the_trunk_beside_feet_on_the_ground_has_its_motion(masked):
    system, rng = with_crossed_legs(), np.random.default_rng(15)
    assert system.nc == 12
    motion = mb.forward_dynamics(system.with_mask() if masked else system, derivatives=False)
    for k in range(6):
        on = np.ones(12) if not masked else (rng.random(12) < k / 5).astype(float)
        q, v, f = on_its_feet(system, rng)
        expected, rank = reference(system, q, v, f, on)
        assert masked or rank == 9  # feet and shanks are one body: two ties at one point
        switch = {"mask": on} if masked else {}
        assert_equal_motion(motion(q=q, v=v, f=f, **switch), expected)
