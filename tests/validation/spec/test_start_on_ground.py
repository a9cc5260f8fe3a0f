"""Feet start as deep in MuJoCo's ground as the weight presses them."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.validation.spec.start import feet_on_plane, onto_ground

TABLE = """<mujoco><option cone="{cone}" impratio="{ratio}"/>
<default><geom friction="{mu}" solref="{time} 1" solimp="{soft}" margin="{margin}"/></default>
<worldbody><geom name="floor" type="plane" size="1 1 1"/>
<body name="trunk" pos="0 0 .4"><freejoint/><geom size=".1" mass="8" pos=".03 .02 0"/>{legs}
</body></worldbody></mujoco>"""
LEG = """<body pos="{x} {y} -.2"><joint axis="0 1 0"/><geom name="foot{k}" size=".02" mass=".2"
pos="0 0 -.15"/></body>"""
SOFT, STIFF = ".015 1 .036", ".9 .95 .001"


@pytest.mark.parametrize("height", [0.4, 0.37, 0.2])
@pytest.mark.parametrize(
    ("cone", "ratio", "mu", "time", "soft", "margin"),
    [
        ("elliptic", 100, 0.8, 0.004, SOFT, 0.0),
        ("pyramidal", 1, 0.6, 0.02, SOFT, 0.001),
        ("pyramidal", 1, 1.0, 0.02, STIFF, 0.0),
    ],
)
def test_feet_start_where_mujocos_ground_carries_the_weight(
    cone, ratio, mu, time, soft, margin, height
):
    legs = "".join(
        LEG.format(k=k, x=x, y=y)
        for k, (x, y) in enumerate([(0.2, 0.1), (0.2, -0.1), (-0.2, 0.1), (-0.2, -0.1)])
    )
    options = {"cone": cone, "ratio": ratio, "mu": mu, "time": time, "soft": soft}
    text = TABLE.format(legs=legs, margin=margin, **options)
    model = mujoco.MjModel.from_xml_string(text)
    system = mb.read_mjcf(model)
    q = np.array(system.tree.q0)
    q[2] = height
    q[2] += onto_ground(system, feet_on_plane(system, q)[0], q)
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_inverse(model, data)  # at rest: nothing moves or accelerates
    forces = np.zeros((data.ncon, 6))
    for k in range(data.ncon):
        mujoco.mj_contactForce(model, data, k, forces[k])
    weight = 9.81 * model.body_mass.sum()
    assert len(forces) == 4
    assert forces[:, 0].sum() == pytest.approx(weight, rel=1e-6)


@pytest.mark.parametrize(("lean", "points"), [(0, 1), (30, 1), (80, 1), (86, 2), (90, 2)])
def test_of_a_foot_the_points_count_that_are_low(lean, points):
    """A capsule has two points, and stands on one end, or lies on both, aslant by its radius."""
    legs = LEG.format(k=0, x=0, y=0).replace('size=".02"', 'type="capsule" size=".02 .1" {}')
    system = mb.read_mjcf(
        TABLE.format(
            legs=legs.format(f'euler="{lean} 0 0"'),
            **{"cone": "elliptic", "ratio": 1, "mu": 1, "time": 0.02, "soft": STIFF, "margin": 0},
        )
    )
    contacts, names = feet_on_plane(system, np.array(system.tree.q0))
    assert len(contacts) == points
    whole = "foot0 on floor"
    assert names == ((whole,) if points == 2 else (contacts[0].name,))
