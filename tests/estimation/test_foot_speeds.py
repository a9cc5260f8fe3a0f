"""Feet that move count less, whatever a mask says; balls slide on slopes while they roll."""

import casadi as ca
import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.estimation import Encoders, Footing, Imu, base_estimator
from mbcasadi.estimation.foot_speeds import (
    DEVIATIONS,
    LASTS,
    LATE,
    FootSpeed,
    noise_of_speed,
    rolled,
)

FEET, DT = ["FL", "FR", "RL", "RR"], 0.002
RATE = 2.0  # rad/s of a knee whose foot falls
RESTS, FALLS = 0.6, 0.06  # s, of all feet; of a foot
SWINGS, LESS = 0.1, 0.6  # s, before a fall; share of an error that is left
BALL = """
<mujoco>
  <option cone="elliptic" impratio="100" integrator="implicitfast" timestep="0.001"/>
  <worldbody>
    <geom type="plane" size="0 0 1"/>
    <body pos="0 0 0.02">
      <joint type="slide" axis="1 0 0"/>
      <joint type="slide" axis="0 0 1"/>
      <joint name="turn" type="hinge" axis="0 1 0" armature="0.1"/>
      <geom type="sphere" size="0.02" mass="3" condim="6" priority="1" solimp="0.015 1 0.02"/>
    </body>
  </worldbody>
  <actuator><velocity joint="turn" kv="20"/></actuator>
</mujoco>"""

LEG, HEIGHT, TURNS = 0.6, 0.1, 1.0  # m, of the hip over the ankle; m, of that over the sole; rad/s
BIPED = """
<mujoco>
  <worldbody>
    <body name="trunk" pos="0 0 0.7">
      <freejoint/>
      <geom size="0.1" mass="10"/>
      {legs}
    </body>
  </worldbody>
</mujoco>"""
SIDE = """
<body pos="0 {y} 0">
  <joint name="{side}_hip" axis="0 1 0"/>
  <geom size="0.02" mass="1"/>
  <body pos="0 0 -0.6">
    <joint name="{side}_ankle" axis="0 1 0"/>
    <geom type="box" size="0.1 0.04 0.01" pos="0 0 -0.09" mass="0.5"/>
    <site name="{side}0" pos="0.1 0.04 -0.1"/>
    <site name="{side}1" pos="0.1 -0.04 -0.1"/>
    <site name="{side}2" pos="-0.1 0 -0.1"/>
  </body>
</body>"""


@pytest.fixture(scope="module")
def system():
    return mb.read_mjcf(mb.models.path("quadruped"))


def said(system, masks, rates, **footing):
    """Return the outputs of each tick, of a base at rest whose knees turn at rates (nt, 4)."""
    q0 = np.array(system.tree.keyframes["stand"], dtype=float)
    own = base_estimator(
        system, [mb.Contact(name) for name in FEET], imu=Imu("trunk"), q0=q0, period=DT,
        encoders=Encoders(rate_noise=0.01), footing=Footing(**footing),
    )  # fmt: skip
    names = next(s for s in own.inputs if s.name == "y").components
    knees = [names.index(f"{foot}_calf") for foot in FEET]
    speeds = [names.index(f"{foot}_calf.rate") for foot in FEET]
    memory = next(s for s in own.inputs if s.name == "z").components
    stood = [memory.index(f"stood{k}") for k in range(4)]
    y, z, outputs = own.y0.copy(), own.z0, []
    for mask, rate in zip(masks, rates, strict=True):
        y[speeds], y[knees] = rate, y[knees] + DT * rate
        found = own.function(y=y, valid=np.ones(13), mask=mask, dt=DT, z=z)
        z = found["z_next"]
        outputs.append({key: np.array(x) for key, x in found.items()})
        outputs[-1]["stood"] = outputs[-1]["z_next"][stood]
    return outputs


def fall(feet, lasts):
    """Return masks of a stand, and rates of the knees of feet that fall for a time, s, behind it.

    These feet swing for `SWINGS` before; from the fall on they are to stand.
    """
    ticks, first = round((RESTS + lasts + 0.1) / DT), round(RESTS / DT)
    masks, rates = np.ones((ticks, 4)), np.zeros((ticks, 4))
    masks[first - round(SWINGS / DT) : first - 1, feet] = 0
    rates[first : first + round(lasts / DT), feet] = RATE
    return masks, rates


def test_a_foot_that_falls_adds_little_until_it_rests(system):
    masks, rates = fall([0], FALLS)
    swings = masks.copy()
    falls = np.flatnonzero(rates[:, 0])
    swings[falls[0] - 1 : falls[-1] + 1, 0] = 0  # what a sensor of the foot would say
    own, other = (said(system, *pair) for pair in ((masks, rates), (swings, rates)))
    open_ = said(system, masks, rates, bounce=1e-12)
    for key in ("q", "v"):
        gaps = [np.abs(a[key] - b[key]).max() for a, b in zip(own, other, strict=True)]
        wrong = [np.abs(a[key] - b[key]).max() for a, b in zip(open_, other, strict=True)]
        assert max(wrong) > 1e-6, f"{key}: the fall is seen where its speed adds no noise"
        assert max(gaps) < LESS * max(wrong), f"{key}: {max(gaps):.1e} of {max(wrong):.1e}"
    assert not any(out["status"].any() for out in own)


@pytest.mark.parametrize(("lasts", "status"), [(LATE, 0), (LATE + 1.5 * LASTS, 2)])
def test_feet_that_are_late_contradict_the_estimate_after_a_while(system, lasts, status):
    outputs = said(system, *fall([0, 1, 2, 3], lasts))
    assert max(float(out["status"][0, 0]) for out in outputs[round(RESTS / DT) :]) == status


@pytest.mark.parametrize(("lasts", "status"), [(LASTS / 2, 0), (1.5 * LASTS, 2)])
def test_feet_that_bounce_contradict_the_estimate_only_where_they_go_on(system, lasts, status):
    masks, rates = fall([0, 1, 2, 3], lasts)
    outputs = said(system, np.ones_like(masks), rates)
    assert max(float(out["status"][0, 0]) for out in outputs) == status


@pytest.mark.parametrize("trots", [False, True])
def test_a_velocity_that_one_wrong_sample_left_is_right_again_within_a_second(system, trots):
    kick, rests, pairs = 0.3, 1.0, np.array([[1, 0, 0, 1], [0, 1, 1, 0.0]])
    kicked = round(2 * rests / DT)  # it stands first, then trots
    q0 = np.array(system.tree.keyframes["stand"], dtype=float)
    own = base_estimator(
        system, [mb.Contact(name) for name in FEET], imu=Imu("trunk"), q0=q0, period=DT,
        encoders=Encoders(rate_noise=0.01),
    )  # fmt: skip
    z, speeds = own.z0, []
    for k in range(kicked + round(1.0 / DT)):
        y = own.y0.copy()
        y[3] += kick / DT * (k == kicked)
        mask = pairs[k // round(0.2 / DT) % 2] if trots and k * DT > rests else np.ones(4)
        out = own.function(y=y, valid=np.ones(13), mask=mask, dt=DT, z=z)
        z = out["z_next"]
        speeds.append(float(np.abs(np.array(out["v"])[:3]).max()))
    assert speeds[kicked] > kick / 2, "the sample moved the estimate"
    assert speeds[-1] < kick / 10


@pytest.mark.parametrize("turns", [True, False])
def test_a_sole_that_rolls_over_its_edge_does_not_contradict_the_estimate_one_that_slides_does(
    turns,
):
    lasts, sides = LATE + LASTS, ("left", "right")
    legs = [SIDE.format(side=side, y=y) for side, y in zip(sides, (0.1, -0.1), strict=True)]
    spec = mujoco.MjSpec.from_string(BIPED.format(legs="".join(legs)))
    own = base_estimator(
        mb.read_mjcf(spec), [mb.Contact(f"{side}{k}") for side in sides for k in range(3)],
        imu=Imu("trunk", kind="body"), encoders=Encoders(rate_noise=0.01), period=DT,
    )  # fmt: skip
    names = list(next(s for s in own.inputs if s.name == "y").components)
    rates = {"left_ankle": TURNS if turns else -TURNS}
    rates |= {} if turns else {"left_hip": TURNS}  # the foot stays level and moves
    y, z, statuses, speeds = own.y0.copy(), own.z0, list[float](), list[float]()
    for tick in range(round((RESTS + lasts) / DT)):
        for joint, rate in rates.items():
            y[names.index(f"{joint}.rate")] = rate * (tick * DT >= RESTS)
            y[names.index(joint)] += DT * y[names.index(f"{joint}.rate")]
        mask = np.repeat([1.0, tick * DT < RESTS], 3)
        out = own.function(y=y, valid=np.ones(5), mask=mask, dt=DT, z=z)
        z = out["z_next"]
        statuses.append(float(out["status"]))
        speeds.append(float(np.abs(np.array(out["v"])[:3]).max()))
    assert max(statuses) == (0 if turns else 2)
    if turns:
        assert max(speeds) < 0.2 * TURNS * HEIGHT, "of what the sole moves by"


class Level:
    """What `noise_of_speed` and `rolled` read of a design and a landmark."""

    def __init__(self, normal, gravity=(0, 0, -9.81), **footing):
        self.normal, self.gravity = np.asarray(normal), np.asarray(gravity)
        self.size, self.radius, self.footing = 3, 0.02, Footing(**footing)
        self.sole, self.reach = False, 0.0


def noise(own, u, variance, turn2=0.0, turn_variance=1.0):
    """Return the noise that a landmark's speed adds."""
    speed = FootSpeed(ca.SX(u), *(ca.SX(x) for x in (variance, turn2, turn_variance)))
    return np.array(ca.evalf(ca.densify(noise_of_speed(own, own, speed))))


def test_noise_by_speed_is_that_of_its_parts_along_the_ground_and_across():
    rng = np.random.default_rng(3)
    for _ in range(20):
        n, u = rng.standard_normal(3), rng.standard_normal(3)
        n, variance = n / np.linalg.norm(n), 0.1 * rng.random() ** 2
        own, up = Level(n, bounce=0.03), n @ u
        Q = noise(own, u, variance)
        beyond = max(0.0, 1 - DEVIATIONS**2 * variance / (u @ u))
        along = np.linalg.norm(u - up * n) ** 2
        t = np.linalg.svd(n[None])[2][1]
        np.testing.assert_allclose(Q @ n, 0.03 * beyond * up**2 * n, atol=1e-14)
        np.testing.assert_allclose(Q @ t, 0.03 * beyond * along * t, atol=1e-14)
        assert not noise(own, u, 1.01 * u @ u / DEVIATIONS**2).any(), "as errors explain"
        own.size, own.sole, own.reach = 6, True, 0.1
        of_sole = noise(own, u, variance, 4.0, 0.1)
        turns = 0.03 * (4.0 - DEVIATIONS**2 * 0.1) * np.eye(3)
        np.testing.assert_allclose(of_sole[:3, :3], Q + 0.01 * turns, atol=1e-14)
        np.testing.assert_allclose(of_sole[3:, 3:], turns, rtol=1e-12)
        assert not of_sole[:3, 3:].any()
        assert not noise(own, u, variance, 4.0, 4.1 / DEVIATIONS**2)[3:, 3:].any()


@pytest.mark.parametrize("rate", [-3.0, 6.0])
@pytest.mark.parametrize("slope", [0.0, 10.0, -15.0])
@pytest.mark.parametrize(("friction", "rolling"), [(0.8, 0.01), (0.6, 0.004)])
def test_a_ball_with_rolling_friction_slides_down_as_in_mujoco(slope, rate, friction, rolling):
    lean = np.deg2rad(slope)
    model = mujoco.MjModel.from_xml_string(BALL)
    model.opt.gravity[:] = -9.81 * np.array([np.sin(lean), 0, np.cos(lean)])
    model.geom_friction[1] = friction, 0.02, rolling
    data = mujoco.MjData(model)
    data.ctrl[0] = rate
    mujoco.mj_step(model, data, 3000)
    height = 0.02 + data.qpos[1]
    own = Level((0, 0, 1), model.opt.gravity, slide=rolling / friction**2)
    own.radius = (0.02 + height) / 2  # over the contact, in the middle of the depth
    found = np.array(ca.evalf(rolled(own, own, ca.SX([0, data.qvel[2], 0])))).ravel()
    slides, law = (v - own.radius * data.qvel[2] for v in (data.qvel[0], found[0]))
    second = 1 - (np.tan(lean) / friction) ** 2  # the law is the first order of the slope
    assert abs(slides * np.sqrt(second) - law) < 1e-2 * abs(law) + 1e-6
    assert not found[1:].any()
    assert (np.abs(law) > 1e-3) == (slope != 0)
