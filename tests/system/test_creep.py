"""How contacts creep, against the forces of MuJoCo's own rows at zero acceleration."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.system.creep import creep_of_bodies, grounds

SLIP, RADIUS = 1e-4, 0.05  # m/s, m

BALL = """<mujoco><option impratio="{impratio}" cone="{cone}">{flag}</option>
  <worldbody><geom name="floor" type="plane" size="0 0 1" friction=".3 .01 .01" {floor}/>
    <body name="ball" pos="0 0 {height}"><freejoint/><geom name="ball" size="{radius}" mass="2"
      friction=".8 .01 .01" condim="{condim}" {ball}/></body></worldbody>{pairs}</mujoco>"""

SOFT = 'solimp=".015 1 .031" solref=".02 1"'
OTHER = 'solimp=".4 .8 .02 .3 1.5" solref=".05 .7"'
PAIR = (
    '<contact><pair geom1="floor" geom2="ball" solimp=".1 .9 .02" solref=".03 1" condim="3" '
    'friction=".5 .5 .01 .01 .01"/></contact>'
)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize(
    ("ball", "floor", "condim", "impratio", "pairs"),
    [
        (SOFT, SOFT, 3, 1.0, ""),
        (SOFT + ' solmix="3"', OTHER, 4, 7.0, ""),
        (SOFT + ' priority="1"', OTHER, 6, 1.0, ""),
        ('solimp=".9 .9 0" solref="-900 -40"', OTHER, 3, 1.0, ""),
        (SOFT, OTHER, 3, 2.0, PAIR),
    ],
)
def test_force_and_slip_are_those_of_mujoco(cone, ball, floor, condim, impratio, pairs):
    depth = 0.007  # m
    model = mujoco.MjModel.from_xml_string(
        BALL.format(
            cone=cone, ball=ball, floor=floor, condim=condim, impratio=impratio, pairs=pairs,
            height=RADIUS - depth, radius=RADIUS, flag="",
        )
    )  # fmt: skip
    data = mujoco.MjData(model)
    data.qvel[0] = SLIP
    mujoco.mj_forward(model, data)
    force = data.efc_J.reshape(-1, model.nv).T @ (data.efc_aref / data.efc_R)
    tree = mb.read_mjcf(model).tree
    (ground,) = grounds(tree)
    assert force[2] > 0
    np.testing.assert_allclose(ground.load(depth), force[2], rtol=1e-9)
    creep = creep_of_bodies(tree, force[2])
    assert list(creep) == [1]
    np.testing.assert_allclose(creep[1] * -force[0], SLIP, rtol=1e-9)


def test_a_body_that_touches_nothing_fixed_does_not_creep():
    tree = mb.read_mjcf(
        "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>"
    ).tree
    assert creep_of_bodies(tree, 10.0) == {}
