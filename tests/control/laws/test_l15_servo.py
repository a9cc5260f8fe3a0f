"""L15's servo control in both forms: rows that are kept, signals, velocities, what is released."""

from pathlib import Path
from runpy import run_path

import casadi as ca
import numpy as np
import pytest
from l15_mechanisms import (
    COUNT,
    RATES,
    ROUNDING,
    SIGNALS,
    bar_path,
    bar_rows,
    departure,
    gap_rows,
    masses,
    motion,
    references,
    robots,
    robots_at,
    wide_limits,
)
from manifold_states import manifold_states, outputs_of
from numpy.testing import assert_allclose
from support.refusals import refused

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.control.laws import LawOptions, keep_rows, servo_control, servo_rows, within_limits

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "07_cooperating_robots.py"
FORMS = ("least_norm", "figures")
FIGURES = [(0.44, 10.13), (2.88, 4.90), (-8.00, -4.43), (4.63, 9.67), (-4.16, 0.46), (-5.11, 0.18)]
LEAST = [(0, 8.23), (0, 4.49), (-8.23, -4.46), (4.46, 8.23), (-4.49, 0), (-8.23, 0)]
LAST_DIGIT = 0.00501  # half of the last printed digit; the extremes are found to 1e-5
arms = pytest.fixture(scope="module")(lambda: robots.system())


@pytest.fixture(scope="module", params=FORMS)
def robots_law(arms, request):
    return law_of(arms, form=request.param, baumgarte=RATES)


def test_the_stabilised_rows_are_kept_and_the_loop_stays_closed(arms, robots_law):
    at = robots_at(arms, robots_law)
    out = outputs_of(robots_law.function, at)
    assert set(out["status"].ravel()) == {0.0}
    a = motion(arms, at, out["u"])
    assert_allclose(departure(robots_law, bar_rows(arms), at, a), 0, atol=ROUNDING)
    assert_allclose(outputs_of(robots_law.desired, at)["a"], a, atol=ROUNDING)
    assert_allclose(out["residual"], 0, atol=ROUNDING)


@pytest.mark.parametrize(("form", "published"), [("figures", FIGURES), ("least_norm", LEAST)])
def test_the_torques_range_as_in_the_papers_figures_and_at_least_norm(arms, form, published):
    t = np.linspace(0, 2 * np.pi, 2001)
    q, v = run_path(str(EXAMPLE))["on_the_path"](t)
    ref = np.vstack([*bar_path(t), np.zeros((9, t.size))])
    at = {"q": q, "v": v, "ref": ref, "z": np.zeros((0, t.size))}
    for u, ends in zip(
        outputs_of(law_of(arms, form=form).function, at)["u"], published, strict=True
    ):
        assert (u.min(), u.max()) == pytest.approx(ends, abs=LAST_DIGIT)


def test_s_moves_the_control_in_its_null_space_only_and_zero_s_is_the_least(arms, robots_law):
    at = robots_at(arms, robots_law, seed=2)
    s = robots_law.reference_slices["s"]
    plain = at | {"ref": at["ref"].copy()}
    plain["ref"][s] = 0
    with_s, without = (outputs_of(robots_law.function, x)["u"] for x in (at, plain))
    difference = with_s - without
    assert np.linalg.norm(difference, axis=0).min() > 0.1
    assert_allclose(motion(arms, at, with_s), motion(arms, at, without), atol=ROUNDING)
    if "least_norm" in robots_law.controller.notes["law"]:
        assert_allclose(np.sum(difference * without, axis=0), 0, atol=ROUNDING)
        assert_allclose(  # moved is the projection of s
            np.sum(difference * at["ref"][s], axis=0), np.sum(difference**2, axis=0), atol=ROUNDING
        )


def test_the_printed_law_is_the_one_for_two_masses_and_keeps_the_gap_if_stabilised():
    """(47), underactuated; with Baumgarte the force that it adds is `m1 (2αψ + β²φ)`."""
    system = masses.system()
    rows, rng = gap_rows(system), np.random.default_rng(3)
    q, v = rng.normal(size=(2, COUNT)), rng.normal(size=(2, COUNT))
    k, rest, (m1, m2) = masses.STIFFNESS, masses.REST_LENGTH, masses.MASSES
    printed = -(1 + m1 / m2) * k * (q[1] - q[0] - rest)
    for rates in (None, RATES):
        law = servo_control(
            system, rows, baumgarte=rates, options=LawOptions(ctrl_limits=wide_limits(system))
        )
        at = {"q": q, "v": v, "ref": np.zeros((2, COUNT)), "z": np.zeros((0, COUNT))}
        u = outputs_of(law.function, at)["u"][0]
        gap, rate = q[1] - q[0] - 2 * rest, v[1] - v[0]
        added = 0 if rates is None else m1 * (2 * rates.alpha * rate + rates.beta**2 * gap)
        assert_allclose(u, printed + added, rtol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_a_fully_actuated_chain_needs_one_control_whatever_the_form(form):
    """No loop, no choice: computed torque, by NumPy."""
    springs = masses.system()
    q, v, y = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("y", 2)
    full = mb.from_equations(
        q, v, M=springs.mass_matrix(q), h=springs.bias_force(q, v), B=np.eye(2), name="full"
    )
    rows = servo_rows(full, q, v, phi=ca.vertcat(q[0] - y[0], q[0] * q[1] - y[1]), y=y)
    law = servo_control(
        full, rows, form=form, baumgarte=None, options=LawOptions(ctrl_limits=wide_limits(full))
    )
    state, rate, ydd = np.array([0.3, 0.9]), np.array([0.4, -0.2]), np.array([1.0, 2.0])
    ref = law.reference(y=[5, 5], ydot=[1, 1], yddot=ydd, s=[9, 9])
    u = np.array(law.function(state, rate, ref, [])[0]).ravel()
    a0 = ydd[0]
    a1 = (ydd[1] - 2 * rate[0] * rate[1] - state[1] * a0) / state[0]
    pull = masses.STIFFNESS * (state[1] - state[0] - masses.REST_LENGTH)
    assert_allclose(u, [a0 - pull, 2 * a1 + pull], rtol=1e-10)


def test_a_non_ideal_force_is_made_up_for_where_the_law_knows_of_it(arms):
    """Friction C of the right pivot (12); unknown, it costs the rows their acceleration."""
    q, v = ca.SX.sym("q", 5), ca.SX.sym("v", 5)
    C = -2.0 * ca.vertcat(0, 0, 0, 0, ca.tanh(v[4] / 0.1))
    friction = ca.Function("friction", [q, v], [C], ["q", "v"], ["C"])
    for known in (None, friction):
        law = law_of(arms, f_nonideal=known, baumgarte=RATES, control_metric=None)
        at = robots_at(arms, law, seed=8)
        force = outputs_of(friction, {"q": at["q"], "v": at["v"]})["C"]
        a = motion(arms, at, outputs_of(law.function, at)["u"], extra=force)
        missed = np.abs(departure(law, bar_rows(arms), at, a)).max()
        assert missed < ROUNDING if known is not None else missed > 0.1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.every(2)
def test_one_law_serves_open_hands_and_the_closed_chain(form):
    """Joints while open, the bar when held: the mask alone changes. The bar feels motors through
    the grasp only, so the form of the figures, which opens the loops, does not reach it."""
    system = mb.read_mjcf(models.path("two_arm_carry"), switchable=True)
    q, v, y = ca.SX.sym("q", 9), ca.SX.sym("v", 9), ca.SX.sym("y", 9)
    rows = servo_rows(system, q, v, phi=q - y, y=y)
    law = servo_control(
        system,
        rows,
        form=form,
        baumgarte=RATES,
        options=LawOptions(ctrl_limits=wide_limits(system)),
    )
    for mask, off in (((1, 0, 0), [0] * 6 + [1] * 3), ((0, 1, 1), [1] * 6 + [0] * 3)):
        on = np.repeat(mask, 6)
        state, rate = manifold_states(system, COUNT, 10, rows=on)
        ref = references(law, COUNT, 11)
        ref[law.reference_slices["off"]] = np.reshape(off, (-1, 1))
        at = {"q": state, "v": rate, "ref": ref, "z": np.zeros((0, COUNT))}
        at["mask"] = np.tile(np.reshape(mask, (-1, 1)), COUNT).astype(float)
        out = outputs_of(law.function, at)
        if form == "figures" and mask == (0, 1, 1):
            assert set(out["status"].ravel()) == {2.0}
            continue
        assert set(out["status"].ravel()) == {0.0}
        at["rows"] = np.tile(on.reshape(-1, 1), COUNT).astype(float)
        missed = departure(law, rows, at, motion(system, at, out["u"]))
        assert_allclose(missed[np.array(off) == 0], 0, atol=1e-6)  # of 1000 rad/s²


def test_within_limits_redundant_motors_take_over_what_clipping_loses(arms):
    """Six motors for three freedoms: the QP finds other torques for the same motion."""
    limits = np.tile([-8.5, 8.5], (6, 1))
    law = servo_control(
        arms, bar_rows(arms), form="figures", options=LawOptions(ctrl_limits=limits)
    )
    ref = law.reference(**dict(zip(SIGNALS, bar_path(0.0), strict=True)))
    state, missed = (np.array(robots.START), np.zeros(5), ref), []
    a_desired = np.array(law.desired(*state, [])[0]).ravel()
    for one in (law, within_limits(law)):
        u, _, status, *_ = one.function(*state, one.z0)
        assert float(status) == 1.0
        a = motion(arms, {"q": state[0][:, None], "v": state[1][:, None]}, np.array(u))[:, 0]
        missed.append(np.linalg.norm(a - a_desired))
    assert missed[0] > 1.0  # rad/s²
    assert missed[1] < 1e-4  # the QP's weight on torques


def test_a_massless_coordinate_passes_the_force_on_through_its_constraint():
    """M need only be positive definite on null(A): a mass is pulled by a rod without any."""
    q, v, y = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("y")
    rod = mb.from_equations(
        q, v, M=np.diag([3.0, 0.0]), h=[[0.0], [0.0]], B=[[0.0], [1.0]], phi=q[0] - q[1]
    )
    law = servo_control(rod, servo_rows(rod, q, v, phi=q[0] - y, y=y), baumgarte=None)
    u, _, status, *_ = law.function([0.2, 0.2], [0, 0], law.reference(yddot=2.0), [])
    assert (float(u), float(status)) == (pytest.approx(6.0, rel=1e-12), 0.0)


def test_what_is_unattainable_is_reported_and_the_nearest_control_is_returned():
    system = masses.system()
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    rows = keep_rows(system, system.rows(q, v, phi=ca.vertcat(masses.gap(q), q[1])))
    law = servo_control(system, rows, options=LawOptions(ctrl_limits=wide_limits(system)))
    u, _, status, _, missing = law.function([0.1, 0.9], [0, 0], np.zeros(3), [])
    assert float(status) == 2.0
    assert abs(float(missing[1])) > 1.0 > 1e-9 > abs(float(missing[0]))  # x2 feels the spring alone
    assert np.isfinite(float(u))


def test_signals_and_time_give_the_same_second_order_form(arms):
    """(19), (20 corrected): `y(t)` by its derivatives, against rows that hold t."""
    q, v, t, y = ca.SX.sym("q", 5), ca.SX.sym("v", 5), ca.SX.sym("t"), ca.SX.sym("y", 2)

    def of(y0, y1):
        return {
            "phi": ca.vertcat(q[0] * y0 - ca.sin(q[1] + y1 * y0), ca.cos(y1) + q[2]),
            "A": ca.horzcat(ca.sin(q[0] * y1), y0, q[2], 0, 1),
            "a0": y0 * q[3],
            "psi": v[0] ** 2 * y1 - ca.cos(y0) * v[4] * q[1],
        }

    clock = ca.vertcat(ca.sin(2 * t), t**3 + 0.5)
    timed = arms.rows(q, v, **of(clock[0], clock[1]), t=t)
    rows, speed = servo_rows(arms, q, v, **of(y[0], y[1]), y=y), ca.jacobian(clock, t)
    now, rng = (
        ca.Function("now", [t], [clock, speed, ca.jacobian(speed, t)]),
        np.random.default_rng(6),
    )
    for _ in range(5):
        q, v, t = rng.normal(size=5), rng.normal(size=5), rng.normal()
        expected = timed.residual(q, t), timed.rate(q, v, t), timed.jacobian(q, v, t)
        for actual, reference in zip(
            rows.form(q, v, *now(t)), (*expected, timed.bias(q, v, t)), strict=True
        ):
            assert_allclose(np.array(actual), np.array(reference), atol=1e-12)
    assert (rows.holonomic, rows.count) == (2, 4)


def test_velocity_rows_follow_their_signal_and_decay_at_twice_alpha(arms):
    """A desired turning rate of the bar, and a Pfaffian row at rest."""
    q, v, y = ca.SX.sym("q", 5), ca.SX.sym("v", 5), ca.SX.sym("y")
    rows = servo_rows(arms, q, v, A=[[0, 1, 0, -1, 0]], psi=v[2] ** 3 + v[2] - y, y=y)
    law = servo_control(
        arms, rows, baumgarte=RATES, options=LawOptions(ctrl_limits=wide_limits(arms))
    )
    at = robots_at(arms, law, seed=7)
    a = motion(arms, at, outputs_of(law.function, at)["u"])
    v, y, ydot = at["v"], *(at["ref"][law.reference_slices[name]][0] for name in ("y", "ydot"))
    along = v[1] - v[3]
    assert_allclose(a[1] - a[3], -2 * RATES.alpha * along, atol=ROUNDING)
    error = v[2] ** 3 + v[2] - y
    assert_allclose((3 * v[2] ** 2 + 1) * a[2] - ydot, -2 * RATES.alpha * error, atol=ROUNDING)


def test_rows_are_released_one_by_one_and_cost_nothing_then(arms):
    law = law_of(arms, baumgarte=RATES)
    at = robots_at(arms, law, seed=9)
    at["ref"][law.reference_slices["s"]] = 0
    full = outputs_of(law.function, at)["u"]
    at["ref"][law.reference_slices["off"]] = [[0.0], [1.0], [0.0]]
    u = outputs_of(law.function, at)["u"]
    missed = departure(law, bar_rows(arms), at, motion(arms, at, u))
    assert_allclose(missed[[0, 2]], 0, atol=ROUNDING)
    assert np.abs(missed[1]).min() > 1e-3
    assert (np.linalg.norm(u, axis=0) < np.linalg.norm(full, axis=0)).all()


def test_what_is_no_servo_law_is_refused(arms):
    q, v, t, y = ca.SX.sym("q", 5), ca.SX.sym("v", 5), ca.SX.sym("t"), ca.SX.sym("y", 1)
    with pytest.raises(err.ProblemError, match="form = 'best'; expected one of 'least_norm'"):
        servo_control(arms, bar_rows(arms), form="best")
    with pytest.raises(err.ShapeError, match=r"servo rows depend on t; .* belongs to y"):
        servo_rows(arms, q, v, phi=q[0] - t)
    with pytest.raises(err.ProblemError, match="a law has no clock"):
        keep_rows(arms, arms.rows(q, v, phi=q[0] - t, t=t))
    with pytest.raises(err.ShapeError, match="expected symbols"):
        servo_rows(arms, q, v, phi=q[0] - y, y=2 * y)
    refused(err.ProblemError, "no servo rows", lambda: servo_rows(arms, q, v, y=y))
    with pytest.raises(err.ProblemError, match="expected 1 different names"):
        servo_rows(arms, q, v, phi=q[0], names=("a", "b"))
    with pytest.raises(err.ShapeError, match=r"servo rows are for nq = 5.*has nq = 2"):
        servo_control(masses.system(), bar_rows(arms))
    wrong = ca.Function("C", [q, v], [q[:2]])
    with pytest.raises(err.ShapeError, match="f_nonideal"):
        servo_control(arms, bar_rows(arms), f_nonideal=wrong)
    with pytest.raises(err.ShapeError, match="Baumgarte alpha has shape"):
        servo_control(arms, bar_rows(arms), baumgarte=mb.Baumgarte((1.0, 2.0), 1.0))


def law_of(arms, rows=None, **options):
    """Servo control of the bar or other rows, least in the Euclidean norm as in the paper."""
    wide = LawOptions(ctrl_limits=wide_limits(arms))
    plain = {"control_metric": np.eye(arms.nu), "options": wide}
    return servo_control(arms, rows or bar_rows(arms), **plain | options)
