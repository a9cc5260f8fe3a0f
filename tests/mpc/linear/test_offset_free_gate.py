"""Offset-free MPC: a wild sample, a step of the plant, a sensor that stays wrong."""

from functools import cache

import numpy as np
import pytest
from support.linear_mpc_cases import at_rest, held, mechanism_options

import mbcasadi.errors as err
from mbcasadi import models, mpc
from mbcasadi.description.status import OUTPUTS, Flag, Status
from mbcasadi.plant import Plant

PERIOD, WRONG_AT, TURN = 0.01, 50, 2 * np.pi
NOISE = mpc.Noise(state=[1e-6, 1e-4], disturbance=1e-6, measurement=1e-6)
MASS = mpc.LinearModel.of([[1.0, 0.1], [0.0, 1.0]], [[0.005], [0.1]], 0.1)


@cache
def crank_controller(**options):
    linear = at_rest("four_bar")
    given = mechanism_options(linear, 20, period=PERIOD)
    return mpc.offset_free_mpc(linear, given, np.eye(6)[:1], **options)


def hold(law, added, ticks=120):
    """Return crank, u, status and flags in MuJoCo, where `added(k)` is the crank encoder's error.

    The plant is 10 % heavier than the model, and loaded by 0.2 N m.
    """
    linear = at_rest("four_bar")
    plant = Plant(models.path("four_bar"), perturb={"mass": 0.1})
    plant.reset(linear.q)
    ref = held(law, linear)
    z, rows = law.controller.z0, []
    for k in range(ticks):
        plant.apply_force(0.2 * np.eye(3)[0])
        q = plant.q + added(k) * np.eye(3)[0]
        out = dict(zip(OUTPUTS, map(np.array, law.function(q, plant.v, ref, z)), strict=True))
        z = out["z_next"]
        plant.step(out["u"].ravel(), round(PERIOD / plant.timestep))
        rows.append((plant.q[0], *(out[name].item() for name in ("u", "status", "flags"))))
    return np.array(rows).T


def test_one_wild_sample_of_an_encoder_moves_the_crank_by_less_than_a_hundredth_of_what_it_did():
    moved = {}
    for case, options in {"with": {}, "without": {"gate": None}}.items():
        calm, shaken = (
            hold(crank_controller(**options), lambda k, e=e: e * (k == WRONG_AT))
            for e in (0.0, TURN)
        )
        moved[case] = np.abs(shaken[:2] - calm[:2]).max(axis=1)
        assert np.all(shaken[2] == Status.SOLVED)
        flagged = np.flatnonzero(shaken[3].astype(int) & Flag.GATED).tolist()
        assert flagged == ([] if options else [WRONG_AT])
    assert moved["without"][0] > 0.3
    assert np.all(moved["with"] < 0.01 * moved["without"])


def test_an_encoder_that_stays_a_turn_wrong_is_a_status_from_the_second_sample_on():
    status, flags = hold(crank_controller(), lambda k: TURN * (k >= WRONG_AT))[2:]
    assert flags[WRONG_AT] == Flag.GATED
    assert status[WRONG_AT + 1] == Status.SUBOPTIMAL
    gate = mpc.Gate(largest_step=20.0)
    status = hold(crank_controller(gate=gate), lambda k: TURN * (k >= WRONG_AT))[2]
    first = WRONG_AT + gate.fail_after - 1
    assert np.all(status[first : first + 20] == Status.BAD_INPUT)  # until the crank swings to there


def test_a_crank_whose_angle_wraps_does_not_notice_a_turn():
    calm = hold(crank_controller(wrap=("crank",)), lambda _: 0.0)
    turned = hold(crank_controller(wrap=("crank",)), lambda k: TURN * (k >= WRONG_AT))
    np.testing.assert_allclose(turned[:2], calm[:2], atol=1e-9)
    np.testing.assert_array_equal(turned[2:], calm[2:])
    with pytest.raises(err.UnknownNameError, match="coupler"):
        crank_controller(wrap=("no_joint",))


def slide(law, sensor=lambda _, x: x, kick=lambda _: 0.0, ticks=120):
    """Return place, status and flags of a mass on its model."""
    x, z, rows = np.array([0.02, 0.0]), law.controller.z0, []
    for k in range(ticks):
        x = x + kick(k) * np.array([1.0, 0.0])
        out = dict(
            zip(OUTPUTS, map(np.array, law.function(sensor(k, x), [0, 0, 0], z)), strict=True)
        )
        z = out["z_next"]
        rows.append((x[0], out["status"].item(), out["flags"].item()))
        x = MASS.A @ x + MASS.B @ out["u"].ravel()
    return np.array(rows).T


@cache
def mass_controller(**options):
    given = mpc.LinearOptions(10, [1.0, 0.1], 0.1, u_bounds=((-2.0, 2.0),))
    return mpc.offset_free_lti(MASS, given, ((1.0, 0.0),), **({"noise": NOISE} | options))


def test_a_true_step_of_the_plant_is_accepted_after_three_samples_and_regulated():
    place, status, flags = slide(mass_controller(), kick=lambda k: float(k == WRONG_AT))
    assert np.flatnonzero(flags.astype(int) & Flag.GATED).tolist() == [WRONG_AT, WRONG_AT + 1]
    assert status[WRONG_AT] == Status.SOLVED
    assert status[WRONG_AT + 1] == Status.SUBOPTIMAL
    assert place[WRONG_AT + 1] > 0.9
    assert abs(place[-1]) < 0.01
    assert np.all(status[WRONG_AT + 20 :] == Status.SOLVED)


def test_a_sensor_that_agrees_with_nothing_is_bad_input_after_six_samples():
    wild = np.random.default_rng(1).standard_normal((120, 2))
    place, status, flags = slide(
        mass_controller(), sensor=lambda k, x: x + wild[k] * (WRONG_AT <= k < WRONG_AT + 30)
    )
    assert np.all(flags[WRONG_AT : WRONG_AT + 30].astype(int) & Flag.GATED)
    assert np.all(status[WRONG_AT + 5 : WRONG_AT + 30] == Status.BAD_INPUT)
    assert np.all(status[WRONG_AT + 40 :] == Status.SOLVED)
    assert np.abs(place).max() < 0.1


def test_an_angle_of_a_plain_model_wraps():
    calm = slide(mass_controller(wrap=(0,)))
    turned = slide(
        mass_controller(wrap=(0,)), sensor=lambda k, x: x + np.array([TURN * (k >= 3), 0.0])
    )
    np.testing.assert_allclose(turned, calm, atol=1e-9)


@pytest.mark.long
def test_an_estimate_of_any_content_comes_back():
    law, rng = mass_controller(), np.random.default_rng(2)
    for case in range(40):
        z = 10.0 ** rng.uniform(-2, 4) * rng.standard_normal(law.controller.z0.size)
        if case % 4 == 0:
            z[rng.integers(z.size)] = np.nan
        x = np.array([0.02, 0.0])
        for _ in range(400):
            u, z, status, *_ = map(np.array, law.function(x, [0, 0, 0], z))
            x = MASS.A @ x + MASS.B @ u.ravel()
        assert status.item() == Status.SOLVED, case
        assert np.abs(x).max() < 0.01, case
