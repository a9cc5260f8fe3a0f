"""Which geoms of a model touch, with which friction, against what MuJoCo reports."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from support.corpora import robot

import mbcasadi as mb
from mbcasadi.errors import ProblemError, ShapeError, UnknownNameError, UnsupportedFeatureError
from mbcasadi.model.geometry import PAIRS

ROUNDING = 1e-12
FAR = 50.0  # m: with this margin MuJoCo reports pairs that do not touch, too
UNREPORTED = ("rim", "corner")  # MuJoCo may report other points of a tilted cylinder or box
FILTERS = """
<mujoco>
  <option><flag {flag}/></option>
  <default><geom type="sphere" size=".1" margin="50"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" friction=".5 .01 .002" condim="4"/>
    <geom name="post" pos="3 0 0"/>
    <body name="a" pos="0 0 1"><freejoint/>
      <geom name="a1" friction=".9 .001 .01"/>
      <geom name="a2" pos="1 0 0" contype="2" conaffinity="0" priority="3" friction=".2 .3 .4"/>
      <body name="b" pos="0 1 0"><joint/><geom name="b1" type="capsule" size=".1 .2"/>
        <body name="c" pos="0 1 0"><joint/><geom name="c1" conaffinity="3"/></body>
      </body>
      <body name="fixed" pos="0 .5 0"><geom name="fixed" condim="6"/></body>
    </body>
    <body name="swing" pos="4 0 1"><joint/><geom name="s1"/></body>
    <body name="d" pos="0 -2 1"><freejoint/><geom name="d1" priority="3" condim="1"/></body>
  </worldbody>
  <contact>
    <exclude body1="d" body2="c"/>
    <exclude body1="swing" body2="a"/>
    <pair geom1="d1" geom2="c1" friction=".3 .4 .1 .2 .25" condim="6" margin="50"/>
    <pair geom1="b1" geom2="a1" margin="50"/>
  </contact>
</mujoco>
"""


def reported(model, q):
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_fwdPosition(model, data)
    return data.contact[: data.ncon]


@pytest.mark.parametrize(
    "flag",
    ['gravity="enable"', 'filterparent="disable"', 'override="enable"'],
    ids=["filters", "parents may touch", "override"],
)
def test_pairs_friction_and_condim_are_those_that_mujoco_reports(flag):
    model = mujoco.MjModel.from_xml_string(FILTERS.format(flag=flag))
    model.opt.o_friction, model.opt.o_margin = [0.11, 0.12, 0.13, 0.14, 0.15], FAR
    system = mb.read_mjcf(model)
    theirs: dict[tuple[str, str], tuple[float, ...]] = {}
    for contact in reported(model, system.tree.q0):
        pair = tuple(model.geom(int(g)).name for g in contact.geom)
        theirs[pair] = (*contact.friction, contact.dim)
    contacts = mb.contacts_of(system)
    assert not contacts.left_out
    assert {(c.geom1, c.geom2) for c in contacts} == set(theirs)
    assert len(theirs) > 15
    for contact in contacts:
        pair = (contact.geom1, contact.geom2)
        ours = (*contact.friction, contact.condim)
        assert ours == pytest.approx(theirs[pair], abs=ROUNDING), contact.name


@pytest.fixture(scope="module")
def filters():
    return mb.read_mjcf(FILTERS.format(flag='gravity="enable"'))


def test_bodies_and_ground_choose_pairs(filters):
    on_floor = mb.contacts_of(filters, bodies=["b", "d"], ground="floor")
    assert [contact.name for contact in on_floor] == [
        "b1 on floor, end +",
        "b1 on floor, end -",
        "d1 on floor",
    ]
    assert on_floor[0].bodies == ("world", "b")
    assert repr(on_floor[2]) == "GeometryContact('d1 on floor', friction=1, condim=1)"
    assert {c.geom1 for c in mb.contacts_of(filters, ground="post")} == {"post"}
    of_d = mb.contacts_of(filters, bodies=["d"])
    assert all("d" in contact.bodies for contact in of_d)
    assert len(of_d) > len(on_floor)
    assert of_d[0:1] == tuple(of_d)[:1]


def test_geoms_choose_pairs_and_the_repr_names_them(filters):
    on_floor = mb.contacts_of(filters, ground="floor", geoms=["b1", "d1"])
    assert [contact.geom2 for contact in on_floor] == ["b1", "b1", "d1"]
    assert repr(on_floor) == "GeometryContacts(3 points: b1 on floor, d1 on floor)"
    every = repr(mb.contacts_of(filters))
    assert every.endswith(" more)")
    assert "\n" not in every
    assert len(every) < 300
    with pytest.raises(UnknownNameError, match="unknown geom 'sole'; valid: 'floor', 'post'"):
        mb.contacts_of(filters, geoms=["sole"])
    with pytest.raises(ProblemError, match="none of 'floor' of any body may touch 'post'"):
        mb.contacts_of(filters, ground="post", geoms=["floor"])


def test_names_that_the_model_lacks_are_named(filters):
    with pytest.raises(UnknownNameError, match="unknown body 'leg'; valid: 'world', 'a', "):
        mb.contacts_of(filters, bodies=["leg"])
    with pytest.raises(UnknownNameError, match="unknown geom 'lawn'; valid: 'floor', 'post'"):
        mb.contacts_of(filters, ground="lawn")
    with pytest.raises(UnknownNameError, match=r"unknown contact 'd1'; valid: .*'d1 on floor'"):
        filters.frame("d1", "contact")
    with pytest.raises(
        UnknownNameError, match=r"'d1 on lawn': unknown geom 'lawn'; valid: 'floor'"
    ):
        filters.frame("d1 on lawn", "contact")


def test_a_model_without_a_floor_is_told_to_get_one():
    ball = "<body><freejoint/><geom name='foot' size='1'/></body>"
    alone = mb.read_mjcf(f"<mujoco><worldbody>{ball}</worldbody></mujoco>")
    wanted = "no geom 'floor'.* fixed to the world.*give the scene.*add <geom name=\"floor\""
    with pytest.raises(UnknownNameError, match=wanted):
        mb.contacts_of(alone, ground="floor")
    with pytest.raises(UnknownNameError, match=rf"contact 'foot on floor, end \+': .*{wanted}"):
        alone.frame("foot on floor, end +", "contact")


def test_what_cannot_touch_is_refused_with_the_reason(filters):
    with pytest.raises(ProblemError, match="'a1' is a geom of body 'a', which moves"):
        mb.contacts_of(filters, ground="a1")
    alone = mb.read_mjcf("<mujoco><worldbody><geom name='post' size='1'/></worldbody></mujoco>")
    with pytest.raises(ProblemError, match="no geom of 'world' may touch another geom"):
        mb.contacts_of(alone, bodies=["world"])
    with pytest.raises(ShapeError, match="q has shape"):
        mb.contacts_of(filters, q=[0.0])


def test_kinds_without_a_formula_are_left_out_with_the_reason_or_refused_as_ground():
    text = """
    <mujoco>
      <asset>
        <hfield name="hills" nrow="2" ncol="2" size="1 1 1 1"/>
        <mesh name="wedge" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
      </asset>
      <worldbody>
        <geom name="hills" type="hfield" hfield="hills"/>
        <geom name="floor" type="plane" size="1 1 1"/>
        <body name="a"><freejoint/><geom name="ball" size=".1"/></body>
        <body name="b"><freejoint/><geom name="stone" type="mesh" mesh="wedge"/></body>
        <body name="c"><freejoint/><geom name="block" type="box" size=".1 .1 .1"/></body>
      </worldbody>
    </mujoco>"""
    system = mb.read_mjcf(text)
    contacts = mb.contacts_of(system)
    assert {(c.geom1, c.geom2) for c in contacts} == {
        ("floor", "ball"), ("floor", "block"), ("ball", "block"),
        ("floor", "stone"), ("ball", "stone"), ("block", "stone"),
    }  # fmt: skip
    reasons = {(pair.geom1, pair.geom2): pair.reason for pair in contacts.left_out}
    assert set(reasons) == {
        ("hills", "ball"), ("hills", "stone"), ("hills", "block"),
    }  # fmt: skip
    assert reasons["hills", "stone"] == "a hfield against a mesh has no formula here"
    with pytest.raises(UnsupportedFeatureError, match="'hills' is a hfield"):
        mb.contacts_of(system, ground="hills")


def test_a_system_of_equations_has_no_geometry():
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    system = mb.from_equations(q, v, M=ca.SX(1), h=ca.SX(0))
    with pytest.raises(ProblemError, match="given by equations and has no geometry"):
        mb.contacts_of(system)


def robot_on_floor(path):
    """Return a robot on a floor, with margins at which MuJoCo reports pairs that do not touch."""
    spec = mujoco.MjSpec.from_file(str(path))
    if not any(geom.type == mujoco.mjtGeom.mjGEOM_PLANE for geom in spec.geoms):
        plane = mujoco.mjtGeom.mjGEOM_PLANE
        spec.worldbody.add_geom(name="lawn", type=plane, size=[1, 1, 1], pos=[0, 0, -0.05])
    for geom in spec.geoms:
        geom.margin = FAR
    return spec.compile()


ROBOTS = {
    "quadruped": lambda: mb.models.path("quadruped"),
    "humanoid": lambda: mb.models.path("humanoid"),
    "Go2": lambda: robot("men__unitree_go2__go2"),
    "G1": lambda: robot("men__unitree_g1__g1"),
    "dm_control humanoid": lambda: robot("dmc__suite__humanoid"),
}


def relative_rows(model, q, contact, point):
    """Return (3, nv) velocity of the second body at a point minus that of the first, by MuJoCo."""
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_fwdPosition(model, data)
    bodies = [int(model.body(name).id) for name in contact.bodies]
    first, second = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    mujoco.mj_jac(model, data, first, None, point, bodies[0])
    mujoco.mj_jac(model, data, second, None, point, bodies[1])
    return second - first


def has_formula(system, contact):
    """Whether the pair is none of the iteration, which `tests/campaign/shapes.py` judges."""
    kinds = {geom.name: geom.kind for geom in system.tree.geoms}
    return (kinds[contact.geom1], kinds[contact.geom2]) in PAIRS


@pytest.mark.parametrize("name", ROBOTS)
def test_contacts_of_robots_are_those_that_mujoco_reports(name):
    model = robot_on_floor(ROBOTS[name]())
    system = mb.read_mjcf(model)
    geoms = {geom.name: i for i, geom in enumerate(system.tree.geoms)}
    planes = [geom.name for geom in system.tree.geoms if geom.kind == "plane"]
    rng, compared = np.random.default_rng(3), 0
    for _ in range(2):
        q = np.array(system.integrate(system.tree.q0, 0.5 * rng.normal(size=system.nv))).ravel()
        theirs = reported(model, q)
        all_of_them = [c for c in mb.contacts_of(system, q=q) if not c.label.startswith(UNREPORTED)]
        on_planes = [contact for contact in all_of_them if contact.geom1 in planes]
        of_links = [c for c in all_of_them if c.geom1 not in planes and has_formula(system, c)]
        for contact in [*on_planes[:6], *of_links[::4][:6]]:
            pair = [geoms[contact.geom1], geoms[contact.geom2]]
            gap, point, normal = (np.array(x).ravel() for x in contact.gap(q))
            ours = np.r_[gap, point, normal, contact.friction, contact.condim]
            errors = [
                np.abs(ours - np.r_[t.dist, t.pos, t.frame[:3], t.friction, t.dim]).max()
                for t in theirs
                if list(t.geom) == pair
            ]
            assert min(errors, default=np.inf) < 100 * ROUNDING, contact.name
            compared += 1
            rows = relative_rows(model, q, contact, point)
            np.testing.assert_allclose(np.array(contact.jacobian(q)), rows, atol=100 * ROUNDING)
            along = np.array(contact.gap_jacobian(q)).ravel()
            np.testing.assert_allclose(along, normal @ rows, atol=100 * ROUNDING)
    assert compared >= 8
