"""Which springs the law of `init` holds, and the gains that they permit."""

import tomllib

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.validation.spec import parse_spec, propose_spec
from mbcasadi.validation.spec.proposal import gains_for
from mbcasadi.validation.spec.springs import BELOW, HeldSprings, springs_to_hold

MOTOR, LOAD, STIFFNESS = 2.0, 3.0, 4e4  # kg, kg, N/m
LIFT = f"""<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
<body pos="0 0 1"><joint name="motor" type="slide" axis="0 0 1" stiffness="9e4"/>
<geom size=".1" mass="{MOTOR}" contype="0" conaffinity="0"/>
<body pos="0 0 -.5"><joint name="spring" type="slide" axis="0 0 1" stiffness="{STIFFNESS}"/>
<geom name="load" size=".1" mass="{LOAD}"/>
<body><joint name="soft" type="slide" axis="1 0 0" stiffness=".1"/><geom size=".01" mass=".001"/>
</body></body></body></worldbody><actuator><motor joint="motor"/></actuator></mujoco>"""


def test_a_spring_is_held_by_its_resonance_against_both_sides_and_against_the_ground():
    system = mb.read_mjcf(LIFT)
    loads = LOAD + 0.001
    free = springs_to_hold(system, [], system.tree.q0)
    assert free.joints == ("spring",)  # not the motor's, nor the soft one
    omega = np.sqrt(STIFFNESS * (1 / MOTOR + 1 / loads))
    assert free.bandwidth == pytest.approx(omega / BELOW)
    foot = mb.contacts_of(system, ground="floor", geoms=["load"])
    stands = springs_to_hold(system, foot, system.tree.q0)
    assert stands.bandwidth == pytest.approx(np.sqrt(STIFFNESS / MOTOR) / BELOW)
    nothing = springs_to_hold(mb.read_mjcf(mb.models.path("quadruped")), [], None)
    assert nothing.joints == ()
    assert nothing.bandwidth == np.inf


LEG = """<body pos="{x} {y} 0"><joint name="hip{k}" axis="0 1 0"/>
<joint name="side{k}" axis="1 0 0"/><geom size=".03" pos="0 0 -.1"/>
<body pos="0 0 -.2"><joint name="knee{k}" axis="0 1 0"/><geom size=".03" pos="0 0 -.1" mass=".3"/>
<body pos="0 0 -.1"><joint name="spring{k}" type="slide" axis="0 0 1" stiffness="{k_N}"/>
<geom name="toe{k}" size=".03" pos="0 0 -.1"/></body></body></body>"""
ROBOT = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 .1"/>
<body name="trunk" pos="0 0 .33"><freejoint/><geom type="box" size=".2 .1 .05" mass="8"/>
{legs}</body></worldbody><actuator>{motors}</actuator></mujoco>"""


def spec_of(tmp_path, stiffness, task=None):
    corners = [(0.2, 0.1), (0.2, -0.1), (-0.2, 0.1), (-0.2, -0.1)]
    legs = [LEG.format(k=k, x=x, y=y, k_N=stiffness) for k, (x, y) in enumerate(corners)]
    motors = [f'<motor joint="{j}{k}"/>' for k in range(4) for j in ("hip", "side", "knee")]
    model = tmp_path / "model.xml"
    model.write_text(ROBOT.format(legs="".join(legs), motors="".join(motors)))
    return tomllib.loads(propose_spec(model, task=task))


def test_init_holds_stiff_springs_and_is_slower_than_they_are(tmp_path):
    sprung = spec_of(tmp_path, 4e4)
    assert sprung["rigid_springs"]["joints"] == [f"spring{k}" for k in range(4)]
    base, fast = sprung["task"][0], gains_for(sprung["period"], HeldSprings())
    assert base["kd"] < fast.kd
    assert base["kd"] == pytest.approx(2 * np.sqrt(base["kp"]), rel=1e-3)
    observer = base["kd"] / fast.kd * fast.observer.bandwidth
    assert sprung["observer"]["bandwidth"] == pytest.approx(observer, rel=1e-2)


def test_the_law_below_a_plan_holds_the_same_springs(tmp_path):
    walks = spec_of(tmp_path, 4e4, task="trot")
    assert walks["options"]["rigid_springs"] == [f"spring{k}" for k in range(4)]
    spec = parse_spec(walks)
    assert [*spec.given["options"].rigid_springs] == walks["options"]["rigid_springs"]


def test_ticks_of_a_walk_follow_the_resonance_of_springs_in_the_air():
    """Late by a tick and a half, the law is an eighth of a period behind the spring."""
    system = mb.read_mjcf(LIFT)
    foot = mb.contacts_of(system, ground="floor", geoms=["load"])
    omega = np.sqrt(STIFFNESS * (1 / MOTOR + 1 / (LOAD + 0.001)))
    stands = springs_to_hold(system, foot, system.tree.q0)
    assert 1.5 * stands.tick == pytest.approx(2 * np.pi / omega / 8)
