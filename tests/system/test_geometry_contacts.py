"""Contacts from a model's geometry, against what MuJoCo reports of them."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from support.compiled import all_compiled

import mbcasadi as mb
from mbcasadi.model.geometry.witness import safe_length

PAIR = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    {fixed}
    <body name="b1" pos="0 0 .1"><freejoint/>{first}
      <body name="arm" pos="0 5 0"><joint axis="1 2 3"/>
        <geom name="weight" size=".01" contype="0" conaffinity="0"/></body></body>
    <body name="b2" pos=".3 0 .2"><freejoint/>{second}</body>
  </worldbody>
</mujoco>
"""
STANDING = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body><freejoint/><geom name="foot" type="cylinder" size=".12 .2"/></body>
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
ON_BODIES = [
    ("sphere", "sphere"),
    ("sphere", "capsule"),
    ("capsule", "capsule"),
    ("sphere", "cylinder"),
    ("sphere", "box"),
]
ROUNDING = 1e-12
STEP = 1e-5
DIFFERENCE = 1e-7  # central differences with that step
POSE = 'pos=".05 -.02 .03" euler="40 20 -30"'


def shape(name, kind):
    return f'<geom name="{name}" {SHAPES[kind]} {POSE} margin="20" friction=".4 .05 .001"/>'


def model_of(first, second):
    """A model in which only the pair may touch."""
    if first == "plane":
        text = PAIR.format(fixed=PLANE, first=INERT, second=shape("g2", second))
    else:
        text = PAIR.format(fixed="", first=shape("g1", first), second=shape("g2", second))
    return mujoco.MjModel.from_xml_string(text)


def configurations(system, count, seed=0):
    """Return random configurations; in every second one the two bodies are close together."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(count, system.nv))
    poses = [np.array(system.integrate(system.tree.q0, step)).ravel() for step in steps]
    for q in poses[::2]:
        q[8:11] = q[:3] + 0.06 * (q[8:11] - q[:3])
    return poses


def reported(model, q):
    """Return MuJoCo's contacts at q."""
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_fwdPosition(model, data)
    return data, list(data.contact[: data.ncon])


PAIRS = [("plane", second) for second in SHAPES] + ON_BODIES
by_pair = pytest.mark.parametrize(("first", "second"), PAIRS)


def values(function, *arguments):
    return [np.array(x).ravel() for x in function.call([ca.DM(a) for a in arguments])]


def nearest(contact, theirs, q):
    """Return MuJoCo's contact that is nearest to one of ours, and ours as an array."""
    gap, point, normal = values(contact.gap, q)
    match = min(theirs, key=lambda t: np.abs(np.r_[gap - t.dist, point - t.pos]).max())
    return match, np.r_[gap, point, normal]


def assert_is_reported(contact, theirs, q):
    match, ours = nearest(contact, theirs, q)
    expected = np.r_[match.dist, match.pos, match.frame[:3]]
    np.testing.assert_allclose(ours, expected, atol=ROUNDING, err_msg=contact.name)
    np.testing.assert_allclose(contact.friction, match.friction, err_msg=contact.name)
    assert contact.condim == match.dim


def is_below_centre(contact, model, q):
    """Return whether a corner of a box is; MuJoCo reports no other one. True for other points."""
    data, _ = reported(model, q)
    _, point, normal = values(contact.gap, q)
    below = normal @ (point - data.geom("g2").xpos) + float(contact.gap(q)[0]) / 2 <= 0
    return below or not contact.label.startswith("corner")


@by_pair
def test_gaps_points_and_normals_are_mujocos(first, second):
    model = model_of(first, second)
    system, compared, overlapping = mb.read_mjcf(model), 0, 0
    for q in configurations(system, 40):
        contacts = mb.contacts_of(system, q=q)
        _, theirs = reported(model, q)
        assert not contacts.left_out
        if contacts[0].label.startswith("rim"):
            continue  # see the test of cylinders that stand
        most = {"cylinder": 2, "capsule": 2, "box": 4} if first == "plane" else {}
        expected = min(len(theirs), most.get(second, 1))
        assert len(contacts) == expected
        for contact in (contact for contact in contacts if is_below_centre(contact, model, q)):
            assert_is_reported(contact, theirs, q)
            compared += 1
            overlapping += float(contact.gap(q)[0]) < 0
    assert compared >= 25
    assert overlapping >= 3


@pytest.mark.parametrize("second", ["cylinder", "box"])
def test_the_centre_of_a_sphere_may_lie_inside(second):
    model = model_of("sphere", second)
    system, inside = mb.read_mjcf(model), 0
    for q in configurations(system, 40, seed=5):
        (contact,) = mb.contacts_of(system, q=q)
        _, theirs = reported(model, q)
        assert_is_reported(contact, theirs, q)
        inside += float(contact.gap(q)[0]) < -0.11
    assert inside >= 5


def test_a_cylinder_that_stands_has_mujocos_three_points_of_its_disc():
    model = mujoco.MjModel.from_xml_string(STANDING)
    system = mb.read_mjcf(model)
    for quat, sign in (([1.0, 0, 0, 0], "-"), ([0.0, 1, 0, 0], "+"), ([0.8, 0, 0, 0.6], "-")):
        q = np.r_[0.1, 0.2, 0.19, quat]
        contacts = mb.contacts_of(system, q=q)
        assert [c.label for c in contacts] == [f"rim {sign}{angle}" for angle in (0, 120, 240)]
        _, theirs = reported(model, q)
        assert len(theirs) == 3
        for contact in contacts:
            assert_is_reported(contact, theirs, q)


def relative_rows(model, data, contact):
    """Return (3, nv) velocity of geom2's body at a contact minus that of geom1's, by MuJoCo."""
    first, second = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    for rows, geom in ((first, contact.geom[0]), (second, contact.geom[1])):
        mujoco.mj_jac(model, data, rows, None, contact.pos, model.geom_bodyid[geom])
    return second - first


@by_pair
def test_jacobians_are_mujocos_relative_velocity_of_the_material(first, second):
    model = model_of(first, second)
    system = mb.read_mjcf(model)
    for q in configurations(system, 6, seed=1):
        data, theirs = reported(model, q)
        for contact in mb.contacts_of(system, q=q):
            if contact.label.startswith("rim") or not is_below_centre(contact, model, q):
                continue
            match, _ = nearest(contact, theirs, q)
            rows = relative_rows(model, data, match)
            ours = np.array(contact.jacobian(q))
            np.testing.assert_allclose(ours, rows, atol=10 * ROUNDING)
            along = match.frame[:3] @ rows
            np.testing.assert_allclose(
                np.array(contact.gap_jacobian(q)).ravel(), along, atol=10 * ROUNDING
            )


@by_pair
@pytest.mark.every(3)
def test_rates_and_biases_are_the_changes_along_a_motion(first, second):
    system = mb.read_mjcf(model_of(first, second))
    rng = np.random.default_rng(2)
    for q in configurations(system, 6, seed=2):
        v = rng.normal(size=system.nv)
        ends = [np.array(system.integrate(q, s * STEP * v)).ravel() for s in (1, -1)]
        for contact in mb.contacts_of(system, q=q):
            gaps = [np.array(contact.gap(end)[0]) for end in ends]
            rows = [np.array(contact.jacobian(end)) for end in ends]
            normal_rows = [np.array(contact.gap_jacobian(end)) for end in ends]
            rate, bias, gap_bias = (
                (after - before) @ by / (2 * STEP)
                for (after, before), by in ((gaps, np.ones(1)), (rows, v), (normal_rows, v))
            )
            found = np.array(contact.gap_jacobian(q) @ v).ravel()
            np.testing.assert_allclose(found, rate.ravel(), atol=DIFFERENCE, err_msg=contact.name)
            (found,) = values(contact.bias, q, v)
            np.testing.assert_allclose(found, bias, atol=DIFFERENCE, err_msg=contact.name)
            (found,) = values(contact.gap_bias, q, v)
            np.testing.assert_allclose(found, gap_bias, atol=DIFFERENCE, err_msg=contact.name)


def all_derivatives(contact, q, v):
    """Return every output of a contact and its derivatives by q and v, as one array."""
    parts = []
    for name in ("gap", "gap_jacobian", "jacobian", "bias", "gap_bias"):
        function = getattr(contact, name)
        arguments = [ca.DM(x) for x in (q, v)][: function.n_in()]
        outputs = function.call(arguments)
        parts += outputs + function.jacobian().call([*arguments, *outputs])
    return np.concatenate([np.array(part).ravel() for part in parts])


@by_pair
def test_derivatives_are_numbers_where_surfaces_touch_and_where_centres_coincide(first, second):
    system = mb.read_mjcf(model_of(first, second))
    v = np.linspace(-1, 1, system.nv)
    q = system.tree.q0.copy()
    (contact, *_) = mb.contacts_of(system, q=q)
    gap, _, normal = values(contact.gap, q)
    touching = q.copy()
    touching[8:11] -= gap * normal
    if first == "plane":
        assert abs(float(contact.gap(touching)[0])) < ROUNDING
    coincident = q.copy()
    coincident[8:15] = q[:7]
    for place in (touching, coincident):
        assert np.all(np.isfinite(all_derivatives(contact, place, v)))


SPECIAL = {
    ("capsule", "capsule"): [("parallel", [0.1, 0.3, 0.0, 1, 0, 0, 0])],
    ("sphere", "capsule"): [("on the axis", [0, 0, 0.1, 1, 0, 0, 0])],
    ("sphere", "cylinder"): [
        ("on the axis", [0, 0, 0.05, 1, 0, 0, 0]),
        ("on the rim", [0.12, 0, 0.2, 1, 0, 0, 0]),
    ],
    ("sphere", "box"): [
        ("on a face", [0.1, 0, 0, 1, 0, 0, 0]),
        ("on a corner", [0.1, 0.25, 0.15, 1, 0, 0, 0]),
        ("in the middle of a cube's diagonal", [0.05, 0.2, 0.1, 1, 0, 0, 0]),
    ],
}


@pytest.mark.parametrize(
    ("pair", "pose"), [(pair, pose) for pair, poses in SPECIAL.items() for _, pose in poses]
)
def test_gaps_are_mujocos_and_derivatives_numbers_where_normals_are_not_unique(pair, pose):
    unturned = [shape(name, kind).replace(POSE, "") for name, kind in zip("ab", pair, strict=True)]
    text = PAIR.format(fixed="", first=unturned[0], second=unturned[1])
    model = mujoco.MjModel.from_xml_string(text)
    system = mb.read_mjcf(model)
    q = system.tree.q0.copy()
    q[8:15], q[:3] = [0.3, -0.2, 0.5, 1, 0, 0, 0], np.r_[0.3, -0.2, 0.5] + pose[:3]
    (contact,) = mb.contacts_of(system)
    _, theirs = reported(model, q)
    gap = float(contact.gap(q)[0])
    assert gap == pytest.approx(min(t.dist for t in theirs), abs=ROUNDING)
    assert np.all(np.isfinite(all_derivatives(contact, q, np.linspace(-1, 1, system.nv))))


@pytest.mark.parametrize("pair", [("sphere", "box"), ("plane", "ellipsoid")])
def test_the_generated_c_gives_the_same_numbers(pair, tmp_path):
    system = mb.read_mjcf(model_of(*pair))
    contact = mb.contacts_of(system)[0]
    members = [contact.gap, contact.gap_jacobian, contact.jacobian, contact.bias, contact.gap_bias]
    c = all_compiled(members, tmp_path)
    v = np.linspace(-1, 1, system.nv)
    for q in configurations(system, 4, seed=8):
        for member in members:
            arguments = [ca.DM(x) for x in (q, v)][: member.n_in()]
            for ours, theirs in zip(
                member.call(arguments), c[member.name()].call(arguments), strict=True
            ):
                np.testing.assert_allclose(np.array(theirs), np.array(ours), atol=ROUNDING)


def test_the_length_of_a_vector_that_vanishes_is_one():
    assert float(ca.evalf(safe_length(ca.SX.zeros(3)))) == 1.0
    assert float(ca.evalf(safe_length(ca.SX([3.0, 4.0, 0.0])))) == 5.0
