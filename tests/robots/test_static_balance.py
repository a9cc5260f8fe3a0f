"""Static balance: torques in proportion to the weight, and a centre of mass beside the foot."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from robots.ground import Ground
from robots.static_balance import static_balance
from robots.whole_body.trials import Walker, walker

LIFTED = 0.05  # m, of the right foot
LEG = """<body name="{name}" pos="0 {y} 0"><joint name="{name}" axis="0 1 0" range="-1e-4 1e-4"/>
<geom type="capsule" size=".02" fromto="0 0 0 0 0 -.4" mass="1"/>
<site name="{name}0" pos=".1 {half} {z}"/><site name="{name}1" pos=".1 -{half} {z}"/>
<site name="{name}2" pos="-.1 {half} {z}"/><site name="{name}3" pos="-.1 -{half} {z}"/></body>"""


def stiff_biped(half):
    """Return a biped of 4 kg that hardly moves, its soles 0.1 m beside its middle, `half` wide."""
    legs = [
        LEG.format(name=name, y=y, z=z, half=half)
        for name, y, z in (("left", 0.1, -0.5), ("right", -0.1, LIFTED - 0.5))
    ]
    spec = mujoco.MjSpec.from_string(f"""<mujoco><compiler angle="radian"/><worldbody>
    <body pos="0 0 .5"><freejoint/><geom size=".1" mass="2"/>{"".join(legs)}</body></worldbody>
    <actuator><motor joint="left" ctrlrange="-9 9"/>
    <motor joint="right" ctrlrange="-9 9"/></actuator>
    </mujoco>""")
    system = mb.read_mjcf(spec)
    names = [f"{side}{k}" for side in ("left", "right") for k in range(4)]
    feet = [mb.Contact(name, friction=0.6, sides=4) for name in names]
    return Walker(spec, system, np.array([0, 0, 0.5, 1, 0, 0, 0, 0, 0]), feet, 4.0)


@pytest.mark.parametrize(
    ("half", "inner", "missing"),
    [(0.02, 1.0, 0.08), (0.05, 1.0, 0.05), (0.15, 1.0, 0.0), (0.15, 1 / 3, 0.05)],
)
def test_what_is_missing_is_how_far_the_centre_of_mass_is_beside_the_sole(half, inner, missing):
    balance = static_balance(stiff_biped(half), (0,), inner=inner)
    assert balance.missing == pytest.approx(missing, abs=2e-3)


def test_torques_are_in_proportion_to_the_weight():
    robot = walker("own", Ground())
    shares = [static_balance(robot, range(4), heavier=c).share for c in (1.1, 2.2)]
    assert 0.01 < shares[0] < 0.5
    assert shares[1] == pytest.approx(2 * shares[0], rel=0.01)
