"""Laws of several modes: against the law with the numbers by hand, as C, and in MuJoCo."""

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.refusals import refused

import mbcasadi as mb
from mbcasadi.control import (
    ControlMode,
    FrameTask,
    InverseDynamicsQP,
    LoadRamp,
    PostureTask,
    Transition,
    laws,
    sequence,
)
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant

H = 0.002
FADE, WAIT = 0.3, 0.1
HOME, AWAY = [0.3, 0.4], [0.45, 0.1]  # m
TUNED = "posture.weight.elbow"

ARM = """
<mujoco><option timestep="0.001" gravity="0 0 0"/>
  <default><geom type="capsule" size=".03" contype="0" conaffinity="0" mass="1"/>
    <motor ctrllimited="true" ctrlrange="-40 40"/></default>
  <worldbody><body name="upper"><joint name="shoulder" axis="0 0 1"/>
    <geom fromto="0 0 0 .4 0 0"/>
    <body name="lower" pos=".4 0 0"><joint name="elbow" axis="0 0 1"/>
      <geom fromto="0 0 0 .3 0 0"/><site name="hand" pos=".3 0 0"/></body></body></worldbody>
  <actuator><motor joint="shoulder"/><motor joint="elbow"/></actuator>
</mujoco>
"""


@pytest.fixture(scope="module")
def arm():
    tasks = [
        FrameTask("hand", position="xy", orientation="", kp=100.0, weight=10.0),
        PostureTask(kp=1.0, weight=1e-2),
    ]
    return InverseDynamicsQP(mb.read_mjcf(ARM), tasks, period=H, tunable=("weights",))


MODES = {
    "home": ControlMode(reference={"hand.position": HOME}),
    "reach": ControlMode({TUNED: 0.5}, reference={"hand.position": AWAY}),
    "wait": ControlMode({TUNED: 0.1}, reference={"hand.position": AWAY}),
}


@pytest.fixture(scope="module")
def reaching(arm):
    """An arm that reaches on request, waits there and returns."""
    q = ca.SX.sym("q", 2)
    far = ca.norm_2(arm.system.frame("hand").pose(q)[0][:2] - ca.DM(AWAY))
    there = ca.Function("far", [q], [far], ["q"], ["far"])
    transitions = [
        Transition("home", "reach", request=1, fade=FADE),
        Transition("reach", "wait", when=there, below=0.01, after=FADE),
        Transition("wait", "home", after=WAIT, fade=FADE),
        Transition("*", "home", when="v.elbow", above=100.0),
    ]
    return sequence(arm, MODES, transitions)


def smooth(s):
    """Return the blend and its derivatives by s, 0 to 1."""
    p = np.polynomial.Polynomial([0, 0, 0, 10, -15, 6])
    return p(s), p.deriv()(s), p.deriv(2)(s)


def test_it_is_the_law_with_the_numbers_by_hand(arm, reaching):
    """A second state machine, in Python, gives reference and tuning of every tick."""
    places, entries = arm.reference_slices, [entry.name for entry in arm.tuning]
    base, defaults = arm.reference_at([0.5, 1.0]), arm.controller.default_tuning
    k, rng, seen = entries.index(TUNED), np.random.default_rng(0), []
    z, z_arm = reaching.controller.z0, arm.z0
    weights, goals = (defaults[k], 0.5, 0.1), (HOME, AWAY, AWAY)
    mode, start, fade, begin = 0, -1.0, 0.0, None
    for tick in range(800):
        t = tick * H
        close = t % 0.9 > 0.2  # where the machine sees the hand, in place of a plant
        q = np.array([0.6, 1.0]) if not close else arm_at(AWAY)
        v = rng.standard_normal(2) + (200.0 * np.eye(2)[1] if tick == 700 else 0.0)
        request = float(tick % 100 == 50)
        before = values(mode, t - start, fade, begin, goals, weights)
        age = t - start + 1e-9
        follows = {
            0: (1, FADE) if request else None,
            1: (2, 0.0) if close and age > FADE else None,
            2: (0, FADE) if age > WAIT else None,
        }[mode] or ((0, 0.0) if mode and v[1] > 100 else None)
        if follows:
            (mode, fade), start, begin = follows, t, before
        goal, rate, bend, weight = values(mode, t - start, fade, begin, goals, weights)
        ref, tuning = base.copy(), defaults.copy()
        ref[places["hand.position"]], tuning[k] = goal, weight
        ref[places["hand.velocity"]], ref[places["hand.acceleration"]] = rate, bend
        expected = arm.function(q=q, v=v, ref=ref, tuning=tuning, z=z_arm)
        found = reaching.function(q=q, v=v, ref=base, tuning=np.r_[defaults, request], z=z)
        assert int(found["mode"]) == mode, tick
        for name in ("u", "status", "flags", "residual"):
            assert_allclose(np.array(found[name]), np.array(expected[name]), rtol=1e-6, atol=1e-6)
        z, z_arm = found["z_next"], expected["z_next"]
        seen.append(mode)
    assert set(seen) == {0, 1, 2}


def arm_at(place):
    """Return the pose of the arm at a place of its hand."""
    x, y = place
    cosine = (x * x + y * y - 0.4**2 - 0.3**2) / (2 * 0.4 * 0.3)
    elbow = np.arccos(cosine)
    return np.array([np.arctan2(y, x) - np.arctan2(0.3 * np.sin(elbow), 0.4 + 0.3 * cosine), elbow])


def values(mode, age, fade, begin, goals, weights):
    """Return place of the hand, its rates, and the weight, of a mode after some time."""
    goal, weight = np.array(goals[mode]), weights[mode]
    if fade == 0.0 or age >= fade - 1e-9:
        return goal, np.zeros(2), np.zeros(2), weight
    (first, _, _, first_weight), (w, rate, bend) = begin, smooth(age / fade)
    step = goal - first
    blended = first_weight + w * (weight - first_weight)
    return first + w * step, rate / fade * step, bend / fade**2 * step, blended


def test_the_c_is_the_function(reaching, tmp_path):
    generated = mb.export_c(reaching, tmp_path / "law").load()
    plant, z, seen, places = Plant(ARM), reaching.controller.z0, [], []
    plant.reset(arm_at(HOME))
    ref, tuning = reaching.law.reference_at(plant.q), reaching.controller.default_tuning
    for tick in range(600):
        tuning[-1] = float(50 <= tick < 60)
        inputs = {"q": plant.q, "v": plant.v, "ref": ref, "tuning": tuning, "mask": [], "z": z}
        found = generated(*(inputs[name] for name in reaching.function.name_in()))
        found = dict(zip(reaching.function.name_out(), found, strict=True))
        if tick % 60 == 0:
            same = reaching.function(**inputs)
            for name in ("u", "z_next", "status", "mode"):
                assert_allclose(np.array(found[name]), np.array(same[name]), rtol=1e-6, atol=1e-6)
        z = found["z_next"]
        assert int(found["status"]) == 0
        plant.step(np.array(found["u"]).ravel(), 2)
        seen.append(int(found["mode"]))
        places.append(np.array(reaching.law.system.frame("hand").pose(plant.q)[0]).ravel()[:2])
    order = [mode for k, mode in enumerate(seen) if k == 0 or mode != seen[k - 1]]
    assert order == [0, 1, 2, 0]
    waiting = np.flatnonzero(np.array(seen) == 2)
    assert waiting.size == round(WAIT / H)
    assert np.abs(np.array(places)[waiting] - AWAY).max() < 0.01
    assert np.abs(places[-1] - np.array(HOME)).max() < 1e-3
    speed = np.abs(np.diff(places, axis=0)).max() / H
    assert speed < 1.1 * 1.875 * 0.3 / FADE  # the largest rate of the blend, for 0.3 m


def test_contacts_come_on_at_once_and_go_off_behind_the_fade():
    """The machine alone: the mask that the law is given, tick by tick."""
    whole = sequence(
        standing(),
        {
            "four": ControlMode({"FL.max_force": 100.0}, {"FL": True}),
            "three": ControlMode({"FL.max_force": 5.0}, {"FL": False}),
        },
        [
            Transition("four", "three", after=0.02, fade=0.01),
            Transition("three", "four", after=0.03),
        ],
    )
    machine, z, masks = whole.machine, whole.machine.z0, []
    function = machine.function()
    for _ in range(30):
        given = {name: np.ones(size) for name, size in machine.sizes.items()}
        found = function(when=[0, 0], request=0, z=z, **given)
        z = found["z_next"]
        masks.append(np.array(found["next_mask"]).ravel())
    assert_array_equal(np.array(masks)[:, 1:], 1.0)
    assert_array_equal(np.array(masks)[:, 0], np.r_[np.ones(15), np.zeros(10), np.ones(5)])


def standing():
    feet = [mb.Contact(foot, friction=0.6, sides=4) for foot in ("FL", "FR", "RL", "RR")]
    system = mb.read_mjcf(mb.models.path("quadruped"))
    ramp = LoadRamp(duration=0.1, force=100.0)
    tunable = ("weights", "forces")
    tasks = [FrameTask("trunk"), PostureTask(weight=1e-2)]
    return InverseDynamicsQP(system, tasks, feet, period=H, load_ramp=ramp, tunable=tunable)


def test_a_law_without_a_solver_has_modes_too():
    system = mb.read_mjcf(mb.models.path("four_bar"))
    law = laws.computed_torque(system, PostureTask())
    q0, v = system.tree.q0, np.zeros(system.nv)
    name = next(name for name in law.reference_slices if name.endswith(".q"))
    other = np.array(law.reference_at(q0))[law.reference_slices[name]] + 0.1
    modes = {"stay": ControlMode(), "turn": ControlMode(reference={name: other})}
    whole = sequence(law, modes, [Transition("stay", "turn", after=law.period)])
    z = whole.controller.z0
    ref = law.reference_at(q0)
    turned = law.reference_at(q0, {name: other})
    for wanted in (ref, turned, turned):
        inputs = {"q": q0, "v": v, "ref": ref, "z": z}
        found = whole.function(**inputs)
        expected = law.function(q=q0, v=v, ref=wanted, z=law.z0)
        assert_allclose(np.array(found["u"]), np.array(expected["u"]), atol=1e-9)
        z = found["z_next"]


def test_memory_that_is_no_number_begins_anew(arm, reaching):
    z = reaching.controller.z0.copy()
    z[:3] = np.nan
    inputs = {"q": [0.5, 1.0], "v": [0.0, 0.0], "ref": arm.reference_at([0.5, 1.0])}
    found = reaching.function(**inputs, tuning=reaching.controller.default_tuning, z=z)
    assert int(found["mode"]) == 0
    assert np.all(np.isfinite(np.array(found["u"])))


def test_what_a_law_does_not_know_is_told_at_once(arm):
    modes = {
        "home": ControlMode({"nose.weight": 1.0}, {"FL": True}, {"hand.place": [0.0, 0.0]}),
        "reach": ControlMode({TUNED: -1.0}, reference={"hand.position": [0.0, 0.0, 0.0]}),
    }
    transitions = [
        Transition("home", "away", after=1.0),
        Transition("reach", "home", when="q.knee", above=0.0),
    ]
    told = ("nose.weight", "FL", "hand.place", "-1.0", "3 numbers", "'away'", "q.knee")
    for text in told:
        refused(ProblemError, text, lambda: sequence(arm, modes, transitions))
    unloaded = {"four": ControlMode(), "three": ControlMode({"FL.max_force": 5.0})}
    refused(ProblemError, "give it in every mode", lambda: sequence(standing(), unloaded, []))
    refused(ProblemError, "no mode", lambda: sequence(arm, {}, []))
    refused(ProblemError, "no condition", lambda: Transition("home", "reach"))
    refused(ProblemError, "together", lambda: Transition("home", "reach", above=1.0))
    refused(ProblemError, "fade = -1", lambda: Transition("home", "reach", after=1.0, fade=-1.0))
    refused(ProblemError, "request = 0", lambda: Transition("home", "reach", request=0))
