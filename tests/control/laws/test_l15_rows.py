"""Servo rows: signals instead of a clock, rows for velocities, rows that are released, errors."""

import casadi as ca
import numpy as np
import pytest
from l15_mechanisms import (
    RATES,
    ROUNDING,
    bar_rows,
    departure,
    masses,
    motion,
    robots,
    robots_at,
    wide_limits,
)
from manifold_states import outputs_of

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi.control.laws import LawOptions, keep_rows, servo_control, servo_rows


@pytest.fixture(scope="module")
def arms():
    return robots.system()


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
    rows = servo_rows(arms, q, v, **of(y[0], y[1]), y=y)
    speed = ca.jacobian(clock, t)
    now = ca.Function("now", [t], [clock, speed, ca.jacobian(speed, t)])
    rng = np.random.default_rng(6)
    for _ in range(5):
        state, rate, moment = rng.normal(size=5), rng.normal(size=5), rng.normal()
        form = rows.form(state, rate, *now(moment))
        expected = [
            timed.residual(state, moment),
            timed.rate(state, rate, moment),
            timed.jacobian(state, rate, moment),
            timed.bias(state, rate, moment),
        ]
        for actual, reference in zip(form, expected, strict=True):
            np.testing.assert_allclose(np.array(actual), np.array(reference), atol=1e-12)
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
    np.testing.assert_allclose(a[1] - a[3], -2 * RATES.alpha * along, atol=ROUNDING)
    error = v[2] ** 3 + v[2] - y
    np.testing.assert_allclose(
        (3 * v[2] ** 2 + 1) * a[2] - ydot, -2 * RATES.alpha * error, atol=ROUNDING
    )


def test_rows_are_released_one_by_one_and_cost_nothing_then(arms):
    law = servo_control(
        arms,
        bar_rows(arms),
        baumgarte=RATES,
        control_metric=np.eye(arms.nu),
        options=LawOptions(ctrl_limits=wide_limits(arms)),
    )
    at = robots_at(arms, law, seed=9)
    at["ref"][law.reference_slices["s"]] = 0
    full = outputs_of(law.function, at)["u"]
    at["ref"][law.reference_slices["off"]] = [[0.0], [1.0], [0.0]]
    out = outputs_of(law.function, at)
    missed = departure(law, bar_rows(arms), at, motion(arms, at, out["u"]))
    np.testing.assert_allclose(missed[[0, 2]], 0, atol=ROUNDING)
    assert np.abs(missed[1]).min() > 1e-3
    assert (np.linalg.norm(out["u"], axis=0) < np.linalg.norm(full, axis=0)).all()


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
    with pytest.raises(err.ProblemError, match="no servo rows"):
        servo_rows(arms, q, v, y=y)
    with pytest.raises(err.ProblemError, match="expected 1 different names"):
        servo_rows(arms, q, v, phi=q[0], names=("a", "b"))
    with pytest.raises(err.ShapeError, match=r"servo rows are for nq = 5.*has nq = 2"):
        servo_control(masses.system(), bar_rows(arms))
    wrong = ca.Function("C", [q, v], [q[:2]])
    with pytest.raises(err.ShapeError, match="f_nonideal"):
        servo_control(arms, bar_rows(arms), f_nonideal=wrong)
    with pytest.raises(err.ShapeError, match="Baumgarte alpha has shape"):
        servo_control(arms, bar_rows(arms), baumgarte=mb.Baumgarte((1.0, 2.0), 1.0))
