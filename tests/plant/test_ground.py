"""A floor under models that have none: what touches it, with which friction, and its slope."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.plant import Ground, Plant, with_ground

BALL = """<mujoco><default><geom condim="1"/></default><worldbody>
<body name="ball" pos="0 0 .1"><freejoint/>
<geom name="ball" size=".1" condim="3" mass="1" friction=".3 .01 .001" {masks}/></body>
</worldbody></mujoco>"""
NOTHING = 'contype="0" conaffinity="0"'


def at_rest(source):
    """Return the state of a model after two seconds."""
    model = source.compile()
    data = mujoco.MjData(model)
    while data.time < 2.0:
        mujoco.mj_step(model, data)
    return data


def test_what_may_touch_something_rests_on_the_floor_and_other_shapes_as_feet_only():
    for masks, feet, falls in (("", (), False), (NOTHING, (), True), (NOTHING, ("ball",), False)):
        data = at_rest(with_ground(BALL.format(masks=masks), Ground(feet=feet)))
        assert (data.qpos[2] < 0) == falls
        if not falls:
            assert data.ncon == 1
            contact = data.contact[0]
            assert contact.dim == 3  # with friction, whatever the default of geoms says
            assert contact.friction[0] == 1.0  # the larger one, as of any pair in MuJoCo


def test_friction_of_the_ground_decides_on_which_slope_a_box_slides():
    box = BALL.replace('size=".1" condim', 'type="box" size=".1 .1 .1" condim').format(masks="")
    for friction, slides in ((0.4, True), (0.6, False)):
        ground = Ground(slope=np.arctan(0.5), friction=friction, feet=("ball",))
        spec = with_ground(
            box.replace('pos="0 0 .1"', 'pos="0 0 .1118" euler="0 -26.565 0"'), ground
        )
        data = at_rest(spec)
        assert (data.qpos[0] < -0.3) == slides  # the plane rises along x


def test_a_model_without_names_is_read_by_both_sides_and_files_say_what_is_wrong(tmp_path):
    path = tmp_path / "ball.xml"
    path.write_text(BALL.format(masks=NOTHING).replace('name="ball" size', "size"))
    source = with_ground(path, Ground(feet=("geom0",)))
    contacts = mb.contacts_of(mb.read_mjcf(source))
    assert [contact.name for contact in contacts] == ["geom0 on floor"]
    assert Plant(source).nq == 7
    model = with_ground(path, Ground()).compile()  # others keep the names that they have without it
    assert sorted(model.geom(k).name for k in range(model.ngeom)) == ["floor", "geom0"]
    with pytest.raises(UnknownNameError, match=r"geom.*'toe'"):
        with_ground(path, Ground(feet=("toe",)))
    with pytest.raises(ProblemError, match="leave \\[ground\\] out"):
        with_ground(source, Ground())
    with pytest.raises(ProblemError, match="its file"):
        with_ground(source.compile(), Ground())
    for wrong in ({"slope": 2.0}, {"friction": 0.0}, {"friction": np.nan}, {"slope": np.nan}):
        with pytest.raises(ProblemError, match=next(iter(wrong))):
            Ground(**wrong)


def test_shapes_without_names_keep_their_numbers_unless_another_has_that_name():
    shapes = '<geom size=".1"/><geom size=".1"/><geom name="geom0" size=".2"/>'
    body = f'<body name="ball" pos="0 0 .1"><freejoint/>{shapes}</body>'
    xml = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
    model = with_ground(xml, Ground(feet=("geom0", "geom1"))).compile()
    found = {model.geom(i).name: model.geom_size[i, 0] for i in range(model.ngeom)}
    assert (found["geom0"], found["geom1"], found[""]) == (0.2, 0.1, 0.1)
