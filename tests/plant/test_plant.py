"""The plant starts closed, steps what it is told to, and says when it diverges."""

import math

import mujoco
import numpy as np
import pytest

from mbcasadi import models
from mbcasadi.errors import ModelError, ShapeError, SimulationError, UnknownNameError
from mbcasadi.plant import Plant, draw_frames

CLOSED = 1e-9  # Newton stops at 1e-10
ROUNDING = 1e-9  # relative, of sums over a dozen forces of MuJoCo
WEIGHT_SHARE = 0.02  # contact forces oscillate by less once the robot has settled

PENDULUM = """
<mujoco model="pendulum">
  <option timestep="0.001" integrator="RK4"/>
  <worldbody>
    <body name="bob">
      <joint name="hinge" type="hinge" axis="0 1 0" damping="0.1"/>
      <geom name="ball" type="sphere" pos="0 0 -1" size="0.1" mass="2"/>
      <site name="tip" pos="0 0 -1"/>
    </body>
  </worldbody>
  <actuator><motor name="torque" joint="hinge" ctrlrange="-5 5"/></actuator>
</mujoco>
"""

# A 1 kg block on a floor of friction 0.5, pulled along +x by a motor.
BLOCK = """
<mujoco model="block">
  <option timestep="0.001" cone="elliptic"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" friction="0.5"/>
    <body name="block" pos="0 0 0.1">
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="z" type="slide" axis="0 0 1"/>
      <geom name="box" type="box" size="0.1 0.1 0.1" mass="1" friction="0.5"/>
      <site name="sole" pos="0 0 -0.1"/>
    </body>
  </worldbody>
  <actuator><motor name="pull" joint="x"/></actuator>
</mujoco>
"""


def test_a_plant_is_made_from_a_path_a_text_a_spec_or_a_model():
    path = models.path("four_bar")
    model = mujoco.MjModel.from_xml_path(str(path))
    sources = (path, str(path), path.read_text(), mujoco.MjSpec.from_file(str(path)), model)
    sizes = {(Plant(source).nq, Plant(source).nu) for source in sources}
    assert sizes == {(3, 1)}


def test_the_users_model_is_never_changed():
    model = mujoco.MjModel.from_xml_path(str(models.path("four_bar")))
    mass, solref, step = model.body_mass.copy(), model.eq_solref.copy(), model.opt.timestep
    Plant(model, rigid=True, perturb={"mass": 0.1}, timestep=2e-4)
    assert (model.body_mass == mass).all()
    assert (model.eq_solref == solref).all()
    assert model.opt.timestep == step


@pytest.mark.parametrize("source", ["no_such_file.xml", "<mujoco><broken></mujoco>"])
def test_an_unreadable_model_is_refused_with_a_reason(source):
    with pytest.raises(ModelError, match=r"no such file|broken|XML"):
        Plant(source)


def test_a_start_off_the_manifold_is_moved_onto_it_in_position_and_velocity():
    plant = Plant(models.path("arm_gripper"))
    rng = np.random.default_rng(1)
    q = plant.keyframe("home") + 0.05 * rng.standard_normal(plant.nq)
    v = rng.standard_normal(plant.nv)
    plant.reset(q, v, consistent=False)
    assert plant.measure(np.zeros(plant.nu)).closure > 1e-3
    plant.reset(q, v)
    before = plant.measure(np.zeros(plant.nu))
    plant.step(np.zeros(plant.nu))
    after = plant.measure(np.zeros(plant.nu))
    assert before.residual < CLOSED
    # A velocity that leaves the manifold would open the loop by v dt, about 1e-3 m.
    assert after.residual < 1e-4


def test_a_start_that_cannot_be_closed_is_an_error():
    # The rocker's end can come no nearer than 0.5 m to a pin that is 2 m away.
    far = (
        models.path("four_bar")
        .read_text()
        .replace(
            'body1="coupler" body2="rocker" anchor="0.15 0 0.2"', 'body1="rocker" anchor="2 0 0.2"'
        )
    )
    plant = Plant(far)
    plant.model.eq_data[0, 3:6] = 0.0
    with pytest.raises(SimulationError, match="violated by"):
        plant.reset(plant.model.qpos0)


def test_a_pendulum_falls_as_the_closed_form_says():
    # Small swing about the rest position: q = q0 cos(w t), w from gravity and inertia.
    plant = Plant(PENDULUM.replace('damping="0.1"', 'damping="0"'))
    start, inertia = 1e-3, 2.0 + 0.4 * 2.0 * 0.1**2
    plant.reset([start])
    plant.step([0.0], 500)
    omega = math.sqrt(2.0 * 9.81 / inertia)
    assert plant.time == pytest.approx(0.5)
    # Left out by the small-angle form: q0²/16 of the phase, below 1e-6 of the amplitude.
    assert plant.q[0] == pytest.approx(start * math.cos(omega * 0.5), abs=1e-6 * start)


def test_a_measurement_satisfies_the_equation_of_motion():
    plant = Plant(models.path("quadruped"))
    plant.reset(plant.keyframe("stand"))
    plant.step(np.zeros(plant.nu), 30)
    seen = plant.measure(np.full(plant.nu, 0.5))
    inertia = np.zeros((plant.nv, plant.nv))
    mujoco.mj_fullM(plant.model, plant.data, inertia)
    left = inertia @ seen.a + plant.data.qfrc_bias
    right = plant.data.qfrc_passive + seen.actuator_force + seen.constraint_force
    assert np.abs(seen.constraint_force).max() > 1
    np.testing.assert_allclose(left, right, atol=1e-5 * np.abs(left).max())  # solver's tolerance
    assert not seen.equality_force.any()


def test_the_equality_force_is_told_apart_from_contact_forces():
    text = BLOCK.replace(
        "</worldbody>",
        """<body name="slave" pos="0 0 1"><joint name="y" type="slide" axis="0 1 0"/>
        <geom type="sphere" size="0.05" mass="1" contype="0" conaffinity="0"/></body>
        </worldbody><equality><joint joint1="y" joint2="x"/></equality>""",
    )
    plant = Plant(text)
    plant.step([20.0], 20)
    seen = plant.measure([20.0])
    assert seen.equality_force[1] == 0  # the coupling does not act on z
    assert seen.constraint_force[1] > 5  # the floor does
    assert abs(seen.equality_force[2]) > 1
    assert seen.equality_force[2] == pytest.approx(seen.constraint_force[2], rel=ROUNDING)


@pytest.mark.parametrize(("pull", "sliding"), [(2.0, False), (8.0, True)])
def test_a_pushed_block_sticks_inside_its_cone_and_slides_on_it(pull, sliding):
    # A sliding block hops on MuJoCo's soft floor: forces are averaged over 0.5 s.
    plant, weight, touches = Plant(BLOCK), 9.81, []
    plant.step([pull], 200)
    for _ in range(500):
        plant.step([pull])
        plant.measure([pull])
        touches.append(plant.contact_forces(["sole"])["sole"])
    force = np.mean([touch.force for touch in touches], axis=0)
    loaded = [touch for touch in touches if touch.count]
    assert {touch.friction for touch in loaded} == {0.5}
    assert np.mean([touch.normal for touch in touches]) == pytest.approx(weight, rel=WEIGHT_SHARE)
    assert force[2] == pytest.approx(weight, rel=WEIGHT_SHARE)
    # The floor holds the block back, with what it takes or with all that it has.
    assert -force[0] == pytest.approx(0.5 * weight if sliding else pull, rel=WEIGHT_SHARE)
    assert (plant.v[0] > 0.1) == sliding
    on_the_cone = [abs(touch.margin) < WEIGHT_SHARE * weight for touch in loaded]
    assert all(on_the_cone) if sliding else not any(on_the_cone)


def test_contacts_of_one_body_are_shared_among_its_sites_by_distance():
    plant = Plant(models.path("humanoid"))
    plant.reset(plant.keyframe("stand"))
    plant.step(np.zeros(plant.nu), 20)
    plant.measure(np.zeros(plant.nu))
    corners = [f"left_foot_{k}" for k in (1, 2, 3, 4)]
    shares = plant.contact_forces(corners)
    whole = plant.contact_forces(["left_foot"], "body")["left_foot"]
    assert all(share.count <= 1 for share in shares.values())
    total = np.sum([share.force for share in shares.values()], axis=0)
    assert whole.normal > 50
    np.testing.assert_allclose(total, whole.force, rtol=ROUNDING)


def test_points_of_a_body_share_its_contacts_as_sites_at_these_points_do():
    plant = Plant(models.path("humanoid"))
    plant.reset(plant.keyframe("stand"))
    plant.step(np.zeros(plant.nu), 20)
    plant.measure(np.zeros(plant.nu))
    corners = [f"left_foot_{k}" for k in (1, 2, 3, 4)]
    by_site = plant.contact_forces(corners)
    places = {f"point of {name}": plant.model.site(name).pos for name in corners}
    at_points = plant.contact_forces_at({key: ("left_foot", at) for key, at in places.items()})
    for name, (force, position) in zip(corners, at_points.values(), strict=True):
        assert force.count == by_site[name].count
        np.testing.assert_allclose(force.force, by_site[name].force, rtol=ROUNDING)
        np.testing.assert_allclose(position, plant.frame_position(name), rtol=ROUNDING)
    with pytest.raises(UnknownNameError, match="unknown body 'paw'"):
        plant.contact_forces_at({"paw": ("paw", np.zeros(3))})
    with pytest.raises(ShapeError, match="sole: the point is"):
        plant.contact_forces_at({"sole": ("left_foot", np.zeros(2))})


def test_mass_and_friction_errors_are_those_that_were_asked_for():
    right, wrong = Plant(BLOCK), Plant(BLOCK, perturb={"mass": 0.1, "friction": -0.2})
    np.testing.assert_allclose(wrong.model.body_mass, 1.1 * right.model.body_mass)
    np.testing.assert_allclose(wrong.model.body_inertia, 1.1 * right.model.body_inertia)
    np.testing.assert_allclose(
        wrong.model.geom_friction[:, 0], 0.8 * right.model.geom_friction[:, 0]
    )
    np.testing.assert_allclose(wrong.model.geom_friction[:, 1:], right.model.geom_friction[:, 1:])


def test_a_seed_draws_one_error_for_each_body_and_the_same_ones_again():
    path = models.path("quadruped")
    first, again = (Plant(path, perturb={"mass": 0.1}, seed=4).factors["mass"] for _ in range(2))
    other = Plant(path, perturb={"mass": 0.1}, seed=5).factors["mass"]
    assert (first == again).all()
    assert (first != other).any()
    assert np.ptp(first) > 0.05
    assert (np.abs(first - 1) <= 0.1).all()


BOXES = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="box" pos="1 2 3" euler="10 20 30"><freejoint/>
      <geom type="box" size="0.1 0.2 0.3" mass="2" pos="0.5 0 0" euler="0 0 90"/></body>
    <body pos="3 0 0"><joint name="slide" type="slide" axis="1 0 0"/>
      <geom size="0.1" mass="3" pos="0.1 0 0"/></body>
  </worldbody>
  <actuator><motor name="push" joint="slide" gear="2"/>
    <position name="hold" joint="slide" kp="7" kv="3"/></actuator>
</mujoco>
"""


def test_a_shift_of_the_centre_of_mass_is_a_share_of_the_bodys_half_lengths():
    plant, shifted = Plant(BOXES), Plant(BOXES, perturb={"com": 0.1})
    rotation = plant.frame_rotation("box", "body")
    moved = rotation.T @ (shifted.data.xipos[1] - plant.data.xipos[1])
    # the box lies turned by 90° about z: its half-lengths are 0.2, 0.1, 0.3 along the body's axes
    np.testing.assert_allclose(np.abs(moved), [0.02, 0.01, 0.03], rtol=1e-6)
    np.testing.assert_array_equal(plant.model.body_inertia, shifted.model.body_inertia)
    np.testing.assert_allclose(plant.data.geom_xpos, shifted.data.geom_xpos, atol=1e-12)
    centred = BOXES.replace(' pos="0.1 0 0"', "")
    with pytest.raises(SimulationError, match="diagonal mass matrix"):
        Plant(centred, perturb={"com": 0.1})
    drawn = Plant(BOXES, perturb={"com": 0.1}, seed=3).factors["com"]
    assert (np.abs(drawn[1]) <= [0.02 + 1e-9, 0.01 + 1e-9, 0.03 + 1e-9]).all()
    assert np.unique(np.abs(drawn[1]).round(9)).size == 3


def test_an_error_of_the_gain_scales_the_whole_force_of_motors_and_servos():
    right, strong = Plant(BOXES), Plant(BOXES, perturb={"gain": 0.1})
    for plant in (right, strong):
        plant.reset(v=[0, 0, 0, 0, 0, 0, 0.5])
    u = [0.3, -0.2]
    force, more = right.measure(u).motor_force, strong.measure(u).motor_force
    np.testing.assert_allclose(force, [0.3, 7 * -0.2 - 3 * 0.5], rtol=1e-12)
    np.testing.assert_allclose(more, 1.1 * force, rtol=1e-12)
    muscle = BOXES.replace('<motor name="push" joint="slide" gear="2"/>', (
        '<muscle name="push" joint="slide" lengthrange="0 1"/>'
    ))  # fmt: skip
    with pytest.raises(SimulationError, match="'gain': the force of actuator 'push' is not linear"):
        Plant(muscle, perturb={"gain": 0.1})


def test_an_unknown_perturbation_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"colour.*'mass', 'friction'"):
        Plant(BLOCK, perturb={"colour": 0.1})
    with pytest.raises(SimulationError, match="above -1"):
        Plant(BLOCK, perturb={"mass": -1.0})
    with pytest.raises(SimulationError, match="between -1 and 1"):
        Plant(BLOCK, perturb={"mass": 1.0}, seed=0)
    assert Plant(BLOCK, perturb={"mass": 1.5}).factors["mass"][0] == 2.5


def test_a_diverging_plant_is_an_error_and_leaves_no_log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plant = Plant(PENDULUM.replace(' ctrlrange="-5 5"', ""))
    with pytest.raises(SimulationError, match=r"diverged at t = .* (position|velocity|accel)"):
        plant.step([1e9], 20000)
    plant.reset()
    plant.step([0.0], 10)  # a reset plant runs again
    assert list(tmp_path.iterdir()) == []


def test_wrong_shapes_and_nan_are_refused():
    plant = Plant(PENDULUM)
    with pytest.raises(ShapeError, match=r"u has shape \(2,\), expected \(1,\)"):
        plant.step([0.0, 0.0])
    with pytest.raises(ShapeError, match="NaN"):
        plant.step([float("nan")])
    with pytest.raises(ShapeError, match=r"q has shape"):
        plant.reset([0.0, 1.0])
    plant.reset([[0.3]])  # a column, as CasADi has it, is right
    assert plant.q == pytest.approx([0.3])


@pytest.mark.parametrize("kind", ["site", "geom", "body"])
def test_an_unknown_frame_lists_the_valid_names(kind):
    plant = Plant(BLOCK)
    valid = {"site": "sole", "geom": "box", "body": "block"}[kind]
    with pytest.raises(UnknownNameError, match=f"unknown {kind} 'hand'.*{valid}"):
        plant.contact_forces(["hand"], kind)


def test_a_name_of_another_kind_is_told_from_one_that_does_not_exist():
    with pytest.raises(UnknownNameError) as known:
        Plant(BLOCK).contact_forces(["sole"], "geom")
    assert known.value.args[0].count("'sole'") > 1
    with pytest.raises(UnknownNameError) as unknown:
        Plant(BLOCK).contact_forces(["hand"], "geom")
    assert unknown.value.args[0].count("'hand'") == 1


def test_an_unknown_key_frame_lists_the_valid_names():
    with pytest.raises(UnknownNameError, match=r"'sit'.*'stand'"):
        Plant(models.path("quadruped")).keyframe("sit")


def test_an_equality_is_switched_by_name_until_the_next_start():
    plant = Plant(models.path("topology_switch"))
    assert not plant.measure([0.0, 0.0]).equality_force.any()
    plant.switch_equalities({"latch": True})
    assert np.abs(plant.measure([1.0, 0.0]).equality_force).max() > 0.1  # N m
    plant.switch_equalities({"latch": False})
    assert not plant.measure([1.0, 0.0]).equality_force.any()
    plant.switch_equalities({"latch": True})
    plant.reset()
    assert not plant.measure([1.0, 0.0]).equality_force.any()
    with pytest.raises(UnknownNameError, match=r"unknown equality 'grip'.*'latch'"):
        plant.switch_equalities({"grip": True})


def test_frames_are_drawn_or_the_reason_is_given():
    plant = Plant(models.path("four_bar"))
    frames = draw_frames(plant.model, np.array([plant.q, plant.q + 0.5]), width=64, height=48)
    if frames.images is None:
        assert "no renderer (" in frames.reason
        assert len(frames.reason) > len("no renderer ()")
    else:
        assert frames.images.shape == (2, 48, 64, 3)
        assert (frames.images[0] != frames.images[1]).any()


def test_marks_are_seen_in_their_frame_and_others_are_refused():
    plant = Plant(models.path("four_bar"))
    q, size = np.array([plant.q, plant.q]), {"width": 64, "height": 48}
    marks = np.array([[[0.0, 0.0, z, 1.0, 0.0, 0.0]] for z in (0.1, 1e6)])  # one out of sight
    frames = draw_frames(plant.model, q, marks=marks, **size)
    if frames.images is not None:
        assert (frames.images[0] != frames.images[1]).any()
    for bad in (np.zeros((1, 1, 6)), np.zeros((2, 1, 3)), np.full((2, 1, 6), np.nan)):
        with pytest.raises(ShapeError, match=r"marks has shape .*, expected \(2, k, 6\)"):
            draw_frames(plant.model, q, marks=bad, **size)


def test_a_renderer_that_does_not_exist_is_a_reason_not_a_crash(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "no_such_library")
    plant = Plant(PENDULUM)
    frames = draw_frames(plant.model, plant.q)
    assert frames.images is None
    assert "no_such_library: " in frames.reason


@pytest.mark.parametrize("bad", [np.ma.masked_array([0.0, 1.0, 0.0], [0, 1, 0]), np.zeros(3) + 1j])
def test_masked_and_complex_states_are_refused(bad):
    plant = Plant(models.path("four_bar"))
    with pytest.raises(ShapeError, match=r"masked entries|is complex"):
        plant.reset(bad)


@pytest.mark.parametrize("pull", [1.0, 3.0])
def test_the_points_of_a_sole_carry_friction_together(pull):
    plant = Plant(BLOCK)
    plant.reset()
    for _ in range(500):
        plant.step([pull], 1)
    found = plant.contact_forces(["sole"])["sole"]
    weight = 9.81
    assert found.count > 1
    assert found.capacity == pytest.approx(0.5 * weight, rel=WEIGHT_SHARE)
    assert found.tangential == pytest.approx(pull, rel=WEIGHT_SHARE)
    assert 1 - found.tangential / found.capacity == pytest.approx(
        1 - pull / (0.5 * weight), abs=WEIGHT_SHARE
    )


@pytest.mark.parametrize(
    ("step", "rigid"),
    [(2e-4, 2e-4), (1e-3, 1e-3), (2e-3, 1e-3), (2.5e-3, 2.5e-3 / 3), (5e-3, 1e-3)],
)
def test_a_rigid_plant_divides_its_step_into_whole_parts_of_a_millisecond_at_most(step, rigid):
    plant = Plant(models.path("four_bar"), rigid=True, timestep=step)
    assert plant.timestep == pytest.approx(rigid, rel=1e-12)
