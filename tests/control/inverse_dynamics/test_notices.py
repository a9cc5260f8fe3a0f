"""Flags of ticks that are solved as asked, and doubtful: open gaps, a base that nothing carries."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.codegen import export_c
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description.status import Flag

BODY = """<mujoco><option gravity="0 0 {gravity}"/><worldbody>
  <geom name="floor" type="plane" size="0 0 1"/>
  <body name="trunk" pos="0 0 1"><freejoint/><geom size=".1" mass="2"/>
    <body pos="0 0 -.2"><joint name="leg" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.2" size=".02" mass=".1"/></body>
    <site name="rotor"/></body></worldbody>
  <actuator><motor joint="leg"/>{actuators}</actuator>{constraints}</mujoco>"""
ROTOR = '<motor site="rotor" gear="0 0 1 0 0 0"/>'
HOOK = '<equality><connect body1="trunk" body2="world" anchor="0 0 0"/></equality>'


def body(gravity=-9.81, actuators="", constraints=""):
    return mb.read_mjcf(BODY.format(gravity=gravity, actuators=actuators, constraints=constraints))


@pytest.fixture(scope="module")
def standing():
    """Return our quadruped's law with its own geometry as contacts, and the pose on its feet."""
    system = mb.read_mjcf(models.path("quadruped"))
    feet = [
        c for c in mb.contacts_of(system, ground="floor") if c.geom2 in ("FL", "FR", "RL", "RR")
    ]
    q = np.array(system.tree.keyframes["stand"])
    q[2] -= min(float(foot.gap(q)[0]) for foot in feet)
    tasks = [FrameTask("trunk", kind="body"), PostureTask(weight=1e-3)]
    return InverseDynamicsQP(system, tasks, [foot.as_contact() for foot in feet]), q


def flags(law, q, mask):
    return law.solve(q, np.zeros(law.system.nv), law.reference_at(q), mask=mask).flags


def test_a_foot_in_the_air_that_is_on_is_an_open_gap(standing):
    law, q = standing
    knee = next(j.qpos for j in law.system.tree.joints if j.name == "FL_calf")
    lifted = q.copy()
    lifted[knee] -= 0.3
    names = [contact.frame for contact in law.contacts]
    first = next(i for i, name in enumerate(names) if name.startswith("FL"))
    off = np.ones(4)
    off[first] = 0
    assert flags(law, q, np.ones(4)) == 0
    assert flags(law, lifted, np.ones(4)) == Flag.OPEN_GAP
    assert flags(law, lifted, off) == 0


def test_a_base_without_any_contact_falls(standing, tmp_path):
    law, q = standing
    assert Flag.UNCARRIED in flags(law, q, np.zeros(4))
    assert Flag.UNCARRIED not in flags(law, q, [1, 0, 0, 0])
    program = export_c(law, tmp_path / "law").load(flags=("-O0",))
    inputs = {"q": q, "v": np.zeros(law.system.nv), "ref": law.reference_at(q), "z": law.z0}
    for mask in (np.zeros(4), np.ones(4)):
        found = [int(f(**inputs, mask=mask)["flags"]) for f in (law.function, program)]
        assert found[0] == found[1]


@pytest.mark.parametrize(
    ("options", "off"),
    [({"actuators": ROTOR}, 0), ({"gravity": 0}, 0), ({"constraints": HOOK}, int(Flag.UNCARRIED))],
)
def test_what_actuators_constraints_or_no_gravity_carry_is_no_doubt(options, off):
    law = InverseDynamicsQP(body(**options), [PostureTask(("leg",))])
    q = np.array(law.system.tree.q0)
    n = len(law.mask_names)
    assert int(flags(law, q, np.ones(n))) & int(Flag.UNCARRIED) == 0
    assert int(flags(law, q, np.zeros(n))) & int(Flag.UNCARRIED) == off


def test_a_base_that_nothing_can_carry_is_named_at_build():
    with pytest.warns(UserWarning, match="falls: neither contacts nor constraints nor actuators"):
        law = InverseDynamicsQP(body(), [PostureTask(("leg",))])
    assert Flag.UNCARRIED in flags(law, np.array(law.system.tree.q0), [])
