"""Equilibria, linear models and regulators of one linkage in several systems of units."""

from functools import cache

import numpy as np
import pytest
from support.unit_systems import (
    KINDS,
    OTHERS,
    SI,
    assert_same,
    controls_of,
    forces_of,
    linkage,
    rates_of,
    slider_crank,
    state_in,
)

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi.control import LawOptions, regulators

AGREE = 1e-7  # relative; Riccati equations and Newton's steps amplify rounding
PERIOD = 2e-3  # s


def start(u):
    """Return a pose that is not closed and cannot be held as it is."""
    return u.of(KINDS) * [0.12, 0.7, -1.3, 0.1]


@cache
def rest(u, held=("cart", "crank")):
    return mb.equilibrium(linkage(u), start(u), held=held)


@cache
def linear_at_rest(u):
    return regulators.linearize(linkage(u), rest(u))


def weights(u):
    """Return Q of deviations and rates, and R, in these units."""
    scale = np.concatenate([u.of(KINDS), rates_of(u)])
    return np.repeat([10.0, 0.1], 4) / scale**2, 0.3 / controls_of(u) ** 2


def span(columns, size):
    """Return the projector on the span of columns, in SI."""
    Q = np.linalg.qr(columns / size[:, None])[0] if columns.size else columns
    return Q @ Q.T


@pytest.mark.parametrize("units", OTHERS, ids=str)
@pytest.mark.parametrize("held", [("cart", "crank"), ("slider",), ()])
def test_equilibria_agree_in_all_units(units, held):
    def found(u):
        at = rest(u, held)
        A = np.array(at.system.constraint_jacobian(at.q))
        return {
            "q": at.q / u.of(KINDS),
            "u": at.u / controls_of(u),
            "force": A.T @ at.lam / forces_of(u),
            "free": span(at.free_directions, u.of(KINDS)),
            "neutral": span(at.neutral_directions, u.of(KINDS)),
            "controls": span(at.control_directions, controls_of(u)),
        }, (at.at_limit, at.unique_control, at.free_directions.shape, at.neutral_directions.shape)

    (expected, words), (other, same_words) = found(SI), found(units)
    assert same_words == words
    assert np.abs(expected["u"]).max() > 0.1
    assert not words[1]  # redundant motors push against each other
    for key, value in expected.items():
        assert_same(other[key], value, AGREE, key)


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_controls_at_their_limits_and_refusals_agree_in_all_units(units):
    def words(u):
        weak = linkage(u, limit=0.5)
        with pytest.raises(err.ProblemError) as refused:
            mb.equilibrium(weak, start(u), held=("cart", "crank"))
        strong = mb.equilibrium(linkage(u, limit=1.0), start(u), held=("cart",))
        return (
            str(refused.value).split("without limits")[0],
            strong.at_limit,
            strong.q / u.of(KINDS),
        )

    (text, limited, q), (other_text, other_limited, other_q) = words(SI), words(units)
    assert (other_text, other_limited) == (text, limited)
    assert_same(other_q, q, 1e-6, "q")


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_linear_models_agree_in_all_units(units):
    def found(u):
        linear, c = linear_at_rest(u), regulators.controllability(linear_at_rest(u))
        q, v = state_in(u)
        moving = regulators.linearize(linkage(u), q, v, controls_of(u) * [1.0, -0.5, 0.2, 0.4])
        values = {}
        for name, lin in (("rest", linear), ("moving", moving)):
            rate = rates_of(u) / u.s
            T = np.hstack([lin.from_dq, lin.from_dv])
            a_x = lin.Z_v @ lin.dfdx[lin.n_q :] @ T
            scale = np.concatenate([u.of(KINDS), rates_of(u)])
            values[f"{name}: a of x"] = a_x * scale / rate[:, None]
            values[f"{name}: a of u"] = (
                lin.Z_v @ lin.dfdu[lin.n_q :] * controls_of(u) / rate[:, None]
            )
            values[f"{name}: free"] = span(lin.Z_q, u.of(KINDS))
        seen = regulators.observability(linear, np.eye(1, linear.nx))
        return values | {"margin": c.margin}, (
            linear.nx, moving.nx, c.rank, c.controllable, c.stabilisable, len(seen.unseen),
        )  # fmt: skip

    (expected, verdicts), (other, same) = found(SI), found(units)
    assert same == verdicts
    assert verdicts[0] == 4
    for key, value in expected.items():
        assert_same(other[key], value, AGREE, key)


def full_gain(linear, K, u):
    """Return the gain on (δq, δv) in SI."""
    scale = np.concatenate([u.of(KINDS), rates_of(u)])
    gain = regulators.gain_in_full_coordinates(linear, K)
    return gain * scale / controls_of(u)[:, None]


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_gains_agree_in_all_units(units):
    def found(u):
        linear, (Q, R), T = linear_at_rest(u), weights(u), PERIOD * u.s
        poles = np.array([-4.0, -5.0, -6.0, -7.0]) / u.s
        gains = {
            "lqr": regulators.lqr_gain(linear, Q, R).K,
            "sampled lqr": regulators.lqr_gain(linear, Q, R, period=T).K,
            "poles": regulators.poles_gain(linear, poles),
            "sampled poles": regulators.poles_gain(linear, poles, period=T),
            "horizon": regulators.finite_horizon_gains(linear, Q, R, 20, Q_end=Q * u.s, period=T)[
                0
            ],
        }
        return {name: full_gain(linear, K, u) for name, K in gains.items()}

    expected, other = found(SI), found(units)
    for key, value in expected.items():
        assert np.abs(value).max() > 0.1
        assert_same(other[key], value, 1e-3 if "poles" in key else 1e-6, key)  # SciPy iterates


@cache
def outputs(name, u):
    """Return control and status of a linear law beside its equilibrium, in SI."""
    linear, (Q, R), T = linear_at_rest(u), weights(u), PERIOD * u.s
    system = linear.system
    q = linear.q + u.of(KINDS) * [0.02, 0.05, -0.04, 0.01]
    v, ref = rates_of(u) * np.array([0.1, -0.2, 0.3, 0.05]), np.zeros(0)
    if name == "lqr":
        law = regulators.lqr(linear, Q, R, options=LawOptions(period=T))
    elif name == "finite_horizon_lqr":
        law = regulators.finite_horizon_lqr(
            linear, Q, R, 20 * T, Q_end=Q * u.s, options=LawOptions(period=T)
        )
    elif name == "trajectory_lqr":
        along = regulators.linearize_along(
            system, *(np.tile(x, (20, 1)) for x in (linear.q, linear.v, linear.u))
        )
        law = regulators.trajectory_lqr(along, Q, R, hold=linear, options=LawOptions(period=T))
    elif name == "lqg":
        noise = np.concatenate([np.zeros(4), (rates_of(u) / u.s) ** 2 * u.s])
        sensors = regulators.encoders(system, ["cart", "crank"])
        filter_ = regulators.kalman(
            linear, sensors, noise, 1e-3 * u.of(KINDS[:2]) ** 2, period=T, gate=None
        )
        law = regulators.lqg(filter_, regulators.lqr_gain(linear, Q, R, period=T).K)
    else:
        law = regulators.lti_inverse_dynamics(
            linear, kp=100.0 / u.s**2, kd=20.0 / u.s, options=LawOptions(period=T)
        )
        ref = np.concatenate(
            [[0.1, -0.2], np.array([0.3, 0.1]) / u.s, np.array([1.0, -2]) / u.s**2]
        )
    out = law.function(q=q, v=v, ref=ref, z=law.controller.z0)
    return np.array(out["u"]).ravel() / controls_of(u), float(out["status"])


@pytest.mark.parametrize(
    "name", ["lqr", "finite_horizon_lqr", "trajectory_lqr", "lqg", "lti_inverse_dynamics"]
)
def test_linear_laws_give_the_same_control_in_all_units(name):
    expected, status = outputs(name, SI)
    assert np.abs(expected).max() > 0.01
    for u in OTHERS:
        found, same = outputs(name, u)
        assert same == status
        assert_same(found, expected, 1e-6, f"{name} in {u}")


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_an_open_state_is_refused_alike_in_all_units(units):
    """Open by half of the tolerance it is closed; by twice, refused."""
    for u in (SI, units):
        system = linkage(u)
        q, v = state_in(u)
        gap = 1e-6 * np.abs(system.frame("tip").pose(q)[0].full()).max()
        for share, refused in ((0.05, False), (5.0, True)):
            opened = q + u.of(KINDS) * [0, 0, 0, share * gap / u.m]
            if refused:
                with pytest.raises(err.ProblemError, match=r"open by"):
                    regulators.linearize(system, opened, v, 0 * controls_of(u))
            else:
                regulators.linearize(system, opened, v, 0 * controls_of(u))


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_an_equilibrium_of_given_equations_agrees_in_all_units(units):
    def found(u):
        at = mb.equilibrium(slider_crank(u), u.of(("rad", "rad", "m")) * [0.7, -0.4, 0.7])
        return at.q / u.of(("rad", "rad", "m")), at.u / [u.torque, u.force, u.torque]

    for other, value in zip(found(units), found(SI), strict=True):
        assert_same(other, value, 1e-6)
