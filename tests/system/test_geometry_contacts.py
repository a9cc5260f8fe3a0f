"""Contacts from a model's geometry, against what MuJoCo reports of them."""

import casadi as ca
import mujoco
import numpy as np
import pytest

import mbcasadi as mb

PAIR = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    {fixed}
    <body name="b1" pos="0 0 .1"><freejoint/>{first}<body name="arm" pos="0 5 0"><joint axis="1 2 3"/>
      <geom name="weight" size=".01" contype="0" conaffinity="0"/></body></body>
    <body name="b2" pos=".3 0 .2"><freejoint/>{second}</body>
  </worldbody>
</mujoco>
"""
COMMON = 'margin="20" friction=".7 .02 .003"'
PLANE = f'<geom name="g1" type="plane" size="1 1 1" pos=".1 .2 -.3" euler="10 -20 30" {COMMON}/>'
INERT = '<geom name="idle" size=".1" contype="0" conaffinity="0"/>'
SHAPES = {
    "sphere": 'type="sphere" size=".11"',
    "capsule": 'type="capsule" size=".07 .25"',
    "cylinder": 'type="cylinder" size=".12 .2"',
    "box": 'type="box" size=".1 .25 .15"',
    "ellipsoid": 'type="ellipsoid" size=".1 .25 .15"',
}
ON_BODIES = [("sphere", "sphere"), ("sphere", "capsule"), ("capsule", "capsule"), ("sphere", "box")]
POSE = 'pos=".05 -.02 .03" euler="40 20 -30"'


def shape(name: str, kind: str) -> str:
    return f'<geom name="{name}" {SHAPES[kind]} {POSE} {COMMON} friction=".4 .05 .001"/>'


def model_of(first: str, second: str) -> mujoco.MjModel:
    """A model in which only the pair may touch."""
    if first == "plane":
        text = PAIR.format(fixed=PLANE, first=INERT, second=shape("g2", second))
    else:
        text = PAIR.format(fixed="", first=shape("g1", first), second=shape("g2", second))
    return mujoco.MjModel.from_xml_string(text)


def configurations(system, count, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(count, system.nv)) * spread
    return [np.array(system.integrate(system.tree.q0, step)).ravel() for step in steps]


def reported(model, q):
    """Return MuJoCo's contacts at q."""
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_fwdPosition(model, data)
    return data, list(data.contact[: data.ncon])


for first, second in [("plane", s) for s in SHAPES] + ON_BODIES:
    model = model_of(first, second)
    system = mb.read_mjcf(model)
    worst = 0
    for q in configurations(system, 40):
        ours = mb.contacts_of(system, q=q)
        data, theirs = reported(model, q)
        worst_q = 0
        for c in ours:
            gap, point, normal = (np.array(x).ravel() for x in c.gap(q))
            err = min((np.abs(np.r_[gap - t.dist, point - t.pos, normal - t.frame[:3]]).max() for t in theirs), default=9)
            worst_q = max(worst_q, err)
        worst = max(worst, worst_q)
        if worst_q > 1e-6: print(first, second, len(ours), len(theirs), worst_q, ours[0].label)
    print(first, second, worst)
