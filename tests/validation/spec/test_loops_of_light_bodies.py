"""Rigid loops with which the plant diverges by itself are left soft by `init`."""

import tomllib

import pytest

from mbcasadi.validation.spec import propose_spec

FINGER = """<mujoco><compiler angle="radian"/><option timestep=".001"/><worldbody>
<body><joint name="arm" axis="0 1 0" damping="1"/><geom size=".05" mass="1" pos=".2 0 0"/>
<body pos=".3 0 0"><joint name="lead" axis="0 1 0" {rubs}/><geom size=".01" mass=".001"
pos=".02 0 0" contype="0" conaffinity="0"/></body>
<body pos=".3 .05 0"><joint name="led" axis="0 1 0" {rubs}/><geom size=".01" mass=".001"
pos=".02 0 0" contype="0" conaffinity="0"/></body></body></worldbody>
<equality><joint joint1="led" joint2="lead"/></equality>
<actuator><motor joint="arm"/><motor joint="lead"/></actuator></mujoco>"""


@pytest.mark.parametrize(
    ("rubs", "rigid"), [('damping="1" frictionloss="1"', False), ("", True)], ids=["dry", "smooth"]
)
def test_loops_of_grams_with_dry_friction_are_soft(tmp_path, rubs, rigid):
    model = tmp_path / "model.xml"
    model.write_text(FINGER.format(rubs=rubs))
    written = tomllib.loads(propose_spec(model, task="hold"))
    assert written["validation"].get("rigid", False) is rigid
