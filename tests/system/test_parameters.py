"""Physical parameters as an input p: the members are those of a model whose numbers were edited."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from support.parameter_tree import TREE

import mbcasadi as mb
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.errors import ProblemError, ShapeError, UnknownNameError
from mbcasadi.plant import perturb
from mbcasadi.plant.named_parameters import set_parameters

EXACT = 1e-9  # relative to the largest entry: rounding of MuJoCo and of ours
STEP, BY_DIFFERENCE = 1e-6, 1e-6  # relative, of a central difference
ALL = ["body:*:*", "joint:*:*", "tendon:*:*", "equality:*:*", "gravity"]

ROWS = """
    <spatial name="rope" stiffness="3" damping="0.3" armature="0.02" springlength="0.1">
      <site site="on_base"/><site site="on_fore"/>
    </spatial>
  </tendon>
  <equality>
    <connect name="loop" body1="fore" body2="slider" anchor="0 0 0.3"/>
    <weld name="hold" body1="ball" body2="upper" torquescale="0.7"/>
    <joint name="couple" joint1="elbow" joint2="shoulder" polycoef="0.1 0.5 0.2 0.1 0"/>
  </equality>"""
DRIVEN = "".join(f'<motor joint="{k}"/>' for k in ("shoulder", "elbow", "twist", "slide"))
MECHANISM = TREE.replace("  </tendon>", ROWS).replace("<mujoco>", '<mujoco model="mechanism">')


@pytest.fixture(scope="module")
def system():
    return mb.read_mjcf(MECHANISM, parameters=ALL)


def physical_change(system, rng):
    """Return p with every number changed by some percent, inertias of real bodies."""
    p = system.parameters.values
    return p * (1 + 0.03 * rng.uniform(-1, 1, p.size))


def edited(system, p):
    model = mujoco.MjModel.from_xml_string(MECHANISM)
    set_parameters(model, dict(zip(system.parameters.names, p, strict=True)))
    return model, mujoco.MjData(model)


def test_members_at_p_are_those_of_an_edited_model(system):
    rng = np.random.default_rng(0)
    for _ in range(3):
        p = physical_change(system, rng)
        model, data = edited(system, p)
        data.qpos = rng.standard_normal(model.nq)
        mujoco.mj_normalizeQuat(model, data.qpos)
        data.qvel = rng.standard_normal(model.nv)
        mujoco.mj_forward(model, data)
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        rows = data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
        J = data.efc_J.reshape(-1, model.nv)[rows]
        q, v = data.qpos, data.qvel
        mujoco.mj_energyPos(model, data)
        mujoco.mj_energyVel(model, data)
        mujoco.mj_subtreeVel(model, data)
        references = {
            "mass_matrix": ((q, p), M),
            "bias_force": ((q, v, p), data.qfrc_bias),
            "passive_force": ((q, v, p), data.qfrc_passive),
            "constraint": ((q, p), data.efc_pos[rows]),
            "constraint_jacobian": ((q, p), J),
            "kinetic_energy": ((q, v, p), data.energy[1]),
            "center_of_mass": ((q, v, p), data.subtree_com[0]),
            "momentum": (
                (q, v, p),
                np.append(
                    model.body_subtreemass[0] * data.subtree_linvel[0], data.subtree_angmom[0]
                ),
            ),
        }
        for name, (arguments, expected) in references.items():
            found = system.member(name).call([ca.DM(x) for x in arguments])[0]
            error = np.abs(np.array(found).reshape(np.shape(expected)) - expected).max()
            assert error < EXACT * np.abs(expected).max(), name


def test_every_parameter_has_an_effect_and_the_right_derivative(system):
    rng = np.random.default_rng(1)
    p = system.parameters.values
    p[p == 0.0] = 0.1  # a spring without stiffness has no rest position
    q, v = rng.standard_normal(system.nq), rng.standard_normal(system.nv)
    symbols = [ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv), ca.SX.sym("p", p.size)]
    total = ca.vertcat(
        ca.vec(system.mass_matrix(symbols[0], symbols[2])),
        system.bias_force(*symbols),
        system.passive_force(*symbols),
        system.constraint(symbols[0], symbols[2]),
    )
    f = ca.Function("all", symbols, [total, ca.jacobian(total, symbols[2])])
    J = np.array(f(q, v, p)[1])
    for k, name in enumerate(system.parameters.names):
        step = STEP * max(1.0, abs(p[k])) * np.eye(p.size)[k]
        difference = np.array(f(q, v, p + step)[0] - f(q, v, p - step)[0]).ravel() / (2 * step[k])
        assert np.abs(difference).max() > 0, name
        assert np.abs(J[:, k] - difference).max() < BY_DIFFERENCE * (1 + np.abs(difference).max())


def test_a_system_at_numbers_is_that_of_the_edited_model(system):
    p = physical_change(system, np.random.default_rng(2))
    changed = system.at(dict(zip(system.parameters.names, p, strict=True)))
    again = mb.read_mjcf(edited(system, p)[0])
    rng = np.random.default_rng(3)
    q, v = rng.standard_normal(system.nq), rng.standard_normal(system.nv)
    for name in ("mass_matrix", "bias_force", "passive_force", "constraint_jacobian"):
        arguments = (q, v)[: changed.member(name).n_in()]
        ours, expected = (np.array(x.member(name)(*arguments)) for x in (changed, again))
        np.testing.assert_allclose(ours, expected, atol=EXACT * np.abs(expected).max())
    np.testing.assert_allclose(changed.scales.coordinates, again.scales.coordinates, rtol=1e-6)


def test_what_no_mechanism_has_is_refused(system):
    with pytest.raises(ProblemError, match="masses above 0"):
        system.at({"body:fore:mass": -0.1})
    with pytest.raises(ProblemError, match="distributions of mass"):
        system.at({"body:base:inertia.xx": 0.5})
    with pytest.raises(ProblemError, match="damping"):
        system.at({"joint:elbow:damping": -1.0})
    with pytest.raises(ProblemError, match="finite"):
        system.at({"gravity": [0, 0, np.nan]})
    with pytest.raises(ShapeError, match="3"):
        system.at({"gravity": [0, 0]})
    with pytest.raises(UnknownNameError, match="body:fore:mass"):
        system.at({"body:forre:mass": 1.0})
    with pytest.raises(UnknownNameError, match="joint:elbow:damping"):
        mb.read_mjcf(MECHANISM, parameters=["joint:elbow:inertance"])


def test_a_force_that_a_flag_switches_off_has_no_parameters():
    text = MECHANISM.replace("<option ", '<option><flag damper="disable"/></option><option ')
    with pytest.raises(UnknownNameError):
        mb.read_mjcf(text, parameters=["joint:elbow:damping"])


def test_sensors_and_subtrees_take_p():
    sensors = '<subtreecom name="com" body="upper"/><subtreeangmom name="L" body="base"/>'
    sensed = MECHANISM.replace("</mujoco>", f"<sensor>{sensors}</sensor></mujoco>")
    system = mb.read_mjcf(sensed, parameters=["body:*:mass", "body:*:com"])
    p = physical_change(system, np.random.default_rng(4))
    model = mujoco.MjModel.from_xml_string(sensed)
    set_parameters(model, dict(zip(system.parameters.names, p, strict=True)))
    data, rng = mujoco.MjData(model), np.random.default_rng(5)
    data.qpos, data.qvel = rng.standard_normal(model.nq), rng.standard_normal(model.nv)
    mujoco.mj_normalizeQuat(model, data.qpos)
    mujoco.mj_forward(model, data)
    wrenches = np.zeros((6, model.nbody))
    y = system.sensor_data(data.qpos, data.qvel, data.qacc, wrenches, p)
    np.testing.assert_allclose(np.array(y).ravel(), data.sensordata, rtol=EXACT, atol=EXACT)
    center = np.array(system.subtree("upper")(data.qpos, data.qvel, p)[0]).ravel()
    np.testing.assert_allclose(center, data.sensordata[:3], rtol=EXACT)


MOVED = """
<mujoco model="moved">
  <option density="1.2" viscosity="0.1" wind="1 2 0"/>
  <worldbody>
    <body name="target" mocap="true" pos="0.3 0.1 0.4" quat="0.9 0.1 0.2 0.3">
      <geom size="0.02"/><site name="mark" pos="0.1 0 0.2"/>
      <body name="finger" pos="0 0 0.1"><geom size="0.01"/></body>
    </body>
    <body name="arm"><joint name="a" axis="0 1 0" damping="0.1"/>
      <geom size="0.05 0.2" type="capsule" pos="0.1 0 0.2"/>
      <body name="hand" pos="0 0 0.5"><joint name="b" type="ball"/>
        <geom size="0.1 0.05 0.02" type="box" pos="0 0 0.1"/>
        <site name="tip" pos="0 0 0.2"/></body>
    </body>
  </worldbody>
  <equality>
    <weld name="hold" body1="hand" body2="target"/>
    <connect name="pin" body1="finger" body2="arm" anchor="0.1 0 0"/>
    <connect name="touch" site1="tip" site2="mark"/>
  </equality>
  <actuator>
    <position name="servo" joint="a" kp="30" kv="2"/>
    <motor name="push" site="tip" gear="1 2 0 0 1 0"/>
  </actuator>
</mujoco>
"""


def test_mocap_poses_air_and_gains_are_parameters():
    patterns = ["mocap:target:*", "wind", "density", "viscosity", "actuator:*:*"]
    system = mb.read_mjcf(MOVED, parameters=patterns)
    model = mujoco.MjModel.from_xml_string(MOVED)
    data, rng = mujoco.MjData(model), np.random.default_rng(6)
    p = system.parameters.values + 0.1 * rng.uniform(0, 1, len(system.parameters))
    place = system.parameters.slices
    data.mocap_pos[0], data.mocap_quat[0] = (
        p[place["mocap:target:pos"]],
        p[place["mocap:target:quat"]],
    )
    values = dict(zip(system.parameters.names, p, strict=True))
    set_parameters(model, {name: x for name, x in values.items() if "mocap" not in name})
    assert not {"actuator:push:bias.constant", "actuator:servo:gain.length"} & values.keys()
    data.qpos, data.qvel = rng.standard_normal(model.nq), rng.standard_normal(model.nv)
    mujoco.mj_normalizeQuat(model, data.qpos)
    data.ctrl = [0.3, 2.0]
    mujoco.mj_forward(model, data)
    q, v, u = data.qpos, data.qvel, data.ctrl
    rows = data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
    site = model.site("mark").id
    for found, expected in (
        (system.passive_force(q, v, p), data.qfrc_passive),
        (system.actuator_force(q, v, u, p), data.qfrc_actuator),
        (system.constraint(q, p), data.efc_pos[rows]),
        (system.constraint_jacobian(q, p), data.efc_J.reshape(-1, model.nv)[rows]),
        (system.frame("mark").pose(q, p)[0], data.site_xpos[site]),
    ):
        error = np.array(found).reshape(np.shape(expected)) - expected
        assert np.abs(error).max() < EXACT * np.abs(expected).max()
    fd = mb.forward_dynamics(system)
    J = np.array(fd.jacobian()(q=q, v=v, f=0 * v, p=p)["jac_a_p"])
    for k in range(p.size):
        step = STEP * np.eye(p.size)[k]
        difference = (fd(q, v, 0 * v, p + step)[0] - fd(q, v, 0 * v, p - step)[0]) / (2 * STEP)
        error = np.abs(J[:, k] - np.array(difference).ravel()).max()
        assert error < 1e-5 * (1 + np.abs(J[:, k]).max()), system.parameters.names[k]


def test_frames_of_a_system_at_numbers_are_where_its_mocap_bodies_are():
    system = mb.read_mjcf(MOVED, parameters=["mocap:target:*"])
    symbols = ca.SX.sym("q", system.nq)
    added = system.with_frame("above", symbols, ca.vertcat(symbols[0], 0, 1))
    q = np.array([0.3, 0.9, 0.1, -0.3, 0.3])
    before = np.array(added.frame("mark").pose(q, system.parameters.values)[0]).ravel()
    for height in (0.2, 1.1):
        pose = np.array([0.5, -0.2, height])
        changed = added.at({"mocap:target:pos": pose})
        again = mb.read_mjcf(MOVED.replace("0.3 0.1 0.4", " ".join(map(str, pose))))
        frame = changed.frame("mark")
        assert "p" not in frame.pose.name_in()
        moved = np.array(frame.pose(q)[0]).ravel()
        np.testing.assert_allclose(moved, before + pose - [0.3, 0.1, 0.4], atol=EXACT)
        np.testing.assert_allclose(moved, np.array(again.frame("mark").pose(q)[0]).ravel())
        seen, expected = (
            s.relative_frame("mark", base="tip", base_kind="site") for s in (changed, again)
        )
        for found, wanted in zip(seen.pose(q), expected.pose(q), strict=True):
            np.testing.assert_allclose(np.array(found), np.array(wanted), atol=EXACT)
        at_p = system.relative_frame("mark", base="tip", base_kind="site")
        values = system.parameter_values({"mocap:target:pos": pose})
        np.testing.assert_allclose(
            np.array(at_p.pose(q, values)[0]), np.array(expected.pose(q)[0]), atol=EXACT
        )
        np.testing.assert_allclose(np.array(changed.frame("above").pose(q)[0]).ravel()[2], 1)


def test_the_frame_of_a_tool_is_a_parameter():
    """A site, a tendon that passes through it and a task of it are those of the edited model."""
    system = mb.read_mjcf(MECHANISM, parameters=["site:on_fore:*"])
    rng = np.random.default_rng(4)
    p = system.parameters.values + 0.3 * rng.standard_normal(7)
    model, data = edited(system, p)
    data.qpos, data.qvel = rng.standard_normal(model.nq), rng.standard_normal(model.nv)
    mujoco.mj_normalizeQuat(model, data.qpos)
    mujoco.mj_forward(model, data)
    q, v, site = data.qpos, data.qvel, model.site("on_fore").id
    jac = np.zeros((2, 3, model.nv))
    mujoco.mj_jacSite(model, data, *jac, site)
    frame = system.frame("on_fore")
    for found, expected in (
        (frame.pose(q, p)[0], data.site_xpos[site]),
        (frame.pose(q, p)[1], data.site_xmat[site].reshape(3, 3)),
        (frame.jacobian(q, p), np.vstack(jac)),
        (system.passive_force(q, v, p), data.qfrc_passive),
    ):
        error = np.array(found).reshape(np.shape(expected)) - expected
        assert np.abs(error).max() < EXACT * np.abs(expected).max()
    arm = TREE.replace("</mujoco>", f"<actuator>{DRIVEN}</actuator></mujoco>")
    place, turn = (" ".join(map(str, each)) for each in (p[:3], p[3:]))
    moved = arm.replace('pos="0.1 0 0.2"/>', f'pos="{place}" quat="{turn}"/>')
    open_ = mb.read_mjcf(arm, parameters=["site:on_fore:*"])
    tasks = [FrameTask("on_fore", kp=9.0), PostureTask(weight=1e-3)]
    q0, ref = open_.tree.q0[: open_.nq], np.zeros(3)
    accelerations = []
    for each, numbers in ((open_, {"p": p}), (mb.read_mjcf(moved), {}), (open_, {})):
        law = InverseDynamicsQP(each, tasks)
        ref = law.reference_at(q0) if not ref.any() else ref
        accelerations.append(law.solve(q0, v, ref, **numbers).a)
    a = np.array(accelerations)
    assert np.abs(a[0] - a[1]).max() < 1e-7 * np.abs(a[1]).max()
    assert np.abs(a[0] - a[2]).max() > 1e-3 * np.abs(a[1]).max()


def test_sites_that_equalities_and_sides_of_tendons_copied_are_no_parameters():
    of_sites = '<weld name="hold" site1="on_base" site2="on_fore"/>'
    bodies = '<weld name="hold" body1="ball" body2="upper" torquescale="0.7"/>'
    with pytest.raises(UnknownNameError, match="site:on_base:pos"):
        mb.read_mjcf(MECHANISM.replace(bodies, of_sites), parameters=["site:on_base:pos"])
    model = mujoco.MjModel.from_xml_string(MECHANISM.replace(bodies, of_sites))
    with pytest.raises(UnknownNameError, match="site:on_base:pos"):
        set_parameters(model, {"site:on_base:pos.x": 0.1})


def test_damping_that_differs_among_the_axes_of_a_joint_is_no_parameter():
    model = mujoco.MjModel.from_xml_string(MECHANISM)
    ball = model.joint("ball").dofadr[0]
    model.dof_damping[ball] *= 2
    names = mb.read_mjcf(model, parameters=["joint:*:damping"]).parameters.names
    assert "joint:ball:damping" not in names
    assert "joint:shoulder:damping" in names
    with pytest.raises(UnknownNameError, match="joint:shoulder:damping"):
        set_parameters(model, {"joint:ball:damping": 1.0})


def test_an_error_of_single_parameters_is_that_of_the_edited_model():
    model, expected = (mujoco.MjModel.from_xml_string(MECHANISM) for _ in range(2))
    errors = {"equality:loop:anchor": 0.1, "gravity": -0.5, "body:fore:mass": 0.2}
    perturb(model, errors | {"mass": 0.0})
    anchor = np.array(expected.equality("loop").data[:6])
    gravity, mass = np.array(expected.opt.gravity), expected.body("fore").mass[0]
    np.testing.assert_allclose(
        model.equality("loop").data[:6], anchor * np.repeat([1.1, 1.0], 3), rtol=EXACT
    )
    np.testing.assert_allclose(model.opt.gravity, 0.5 * gravity, rtol=EXACT)
    np.testing.assert_allclose(model.body("fore").mass, 1.2 * mass, rtol=EXACT)
    with pytest.raises(UnknownNameError, match="body:fore:mass"):
        perturb(model, {"body:foore:mass": 0.1})


NOT_READ = """<mujoco><worldbody><geom name="drum" size=".1"/><site name="a" pos="-.5 0 .2"/>
<body pos="0 0 1"><joint name="hinge" axis="0 1 0"/><geom size=".1" pos=".5 0 0"/>
<site name="b" pos=".5 0 0"/></body></worldbody>
<tendon><spatial name="around"><site site="a"/><geom geom="drum"/><site site="b"/></spatial>
<spatial name="straight"><site site="a"/><site site="b"/></spatial></tendon>
<actuator><motor name="motor" joint="hinge"/><position name="servo" joint="hinge" kp="5"/>
<damper name="damper" joint="hinge" kv="1" ctrlrange="0 1"/>
<general name="both" joint="hinge" gaintype="affine" biastype="affine"/></actuator></mujoco>"""


def test_what_mujoco_does_not_read_of_a_type_is_no_parameter():
    patterns = ["actuator:*:*", "tendon:*:armature"]
    system = mb.read_mjcf(NOT_READ, parameters=patterns)
    affine = {f"bias.{term}" for term in ("constant", "length", "velocity")}
    terms = {
        "motor": {"gain.constant"},
        "servo": {"gain.constant", *affine},
        "damper": {"gain.constant", "gain.length"},
        "both": {"gain.constant", "gain.length", *affine},
    }
    expected = {f"actuator:{name}:{term}" for name, each in terms.items() for term in each}
    assert {*system.parameters.names} == expected | {"tendon:straight:armature"}
    model = mujoco.MjModel.from_xml_string(NOT_READ)
    for name in system.parameters.names:
        set_parameters(model, {name: 1.5})  # the plant has the same ones
    for name in ("actuator:motor:bias.constant", "tendon:around:armature"):
        with pytest.raises(UnknownNameError, match=name):
            set_parameters(model, {name: 1.5})
        with pytest.raises(UnknownNameError, match=name.split(".")[0]):
            mb.read_mjcf(NOT_READ, parameters=[name.split(".")[0]])
