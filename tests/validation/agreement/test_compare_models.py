"""Two models against each other: what differs is found, named, and handed out with its state."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from support.pages import assert_blocks_print_what_they_show, blocks_of
from typer.testing import CliRunner

import mbcasadi as mb
from mbcasadi.cli.app import app
from mbcasadi.errors import ModelError, ProblemError, UnknownNameError

LENGTHS, MASSES = (0.3, 0.8, 0.6), (0.5, 1.1, 0.7)
PIVOT = (0.9, 0.1)  # x, z of the end of the last link
JOINTS = ("crank", "coupler", "rocker")


def links(place, child):
    """Return MJCF of a chain of links along x, which turn about the negative y axis."""
    k = place
    if k == len(LENGTHS):
        return child
    start = LENGTHS[k - 1] if k else 0.0
    inertia = MASSES[k] * LENGTHS[k] ** 2 / 12
    return (
        f'<body name="{JOINTS[k]}" pos="{start} 0 0">'
        f'<joint name="{JOINTS[k]}" axis="0 -1 0" damping="0.2"/>'
        f'<inertial pos="{LENGTHS[k] / 2} 0 0" mass="{MASSES[k]}" '
        f'diaginertia="{inertia} {inertia} {inertia}"/>{links(k + 1, child)}</body>'
    )


def twin(*, closed=True, order=JOINTS, damping="0.2"):
    body = links(0, f'<site name="tip" pos="{LENGTHS[-1]} 0 0"/>').replace("0.2", damping)
    loop = '<equality><connect site1="tip" site2="pivot"/></equality>' if closed else ""
    motors = "".join(f'<motor name="{name}" joint="{name}"/>' for name in order)
    return (
        f'<mujoco model="twin"><worldbody>{body}<site name="pivot" pos="{PIVOT[0]} 0 {PIVOT[1]}"/>'
        f"</worldbody>{loop}<actuator>{motors}</actuator></mujoco>"
    )


def own(*, mass=MASSES[1], pivot=PIVOT, closed=True, order=(0, 1, 2)):
    """Return the same mechanism by Lagrange's equations: angles between the links, two rows."""
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    angle = [q[order[0]], q[order[0]] + q[order[1]], ca.sum1(q)]
    ends, kinetic, potential = [ca.SX.zeros(2)], 0, 0
    for k, length in enumerate(LENGTHS):
        along = length * ca.vertcat(ca.cos(angle[k]), ca.sin(angle[k]))
        middle, m = ends[-1] + along / 2, mass if k == 1 else MASSES[k]
        rate = ca.jtimes(ca.vertcat(middle, angle[k]), q, v)
        inertia = MASSES[k] * length**2 / 12
        kinetic += m * ca.sumsqr(rate[:2]) / 2 + inertia * rate[2] ** 2 / 2
        potential += 9.81 * m * middle[1] + 3.0  # the constant has no effect
        ends.append(ends[-1] + along)
    phi = (ends[-1] - ca.DM(pivot)) * ca.DM([2.0, -5.0]) if closed else None
    return mb.from_lagrangian(
        q, v, kinetic=kinetic, potential=potential, force=-0.2 * v, B=ca.DM.eye(3), phi=phi
    )


NAMES = dict(zip(("q_0", "q_1", "q_2"), JOINTS, strict=True))


def test_own_equations_agree_with_their_twin_though_their_rows_are_written_in_another_way():
    found = mb.compare(own(), twin(), coordinates=NAMES, states=5)
    assert found.agrees, str(found)
    assert {"mass_matrix", "bias_force", "passive_force", "potential_energy", "actuation"} <= {
        difference.quantity for difference in found.differences
    }
    assert found["constraint_projector"].scale > 0.1
    assert found["constraint_acceleration"].scale > 0.1
    assert "(2 and 3 rows) are compared by what they mean" in found.notes[1]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"mass": 1.2}, {"mass_matrix", "bias_force", "gravity_force", "kinetic_energy",
                         "potential_energy"}),
        ({"pivot": (0.9, 0.1001)}, {"constraint_gap"}),
    ],
)  # fmt: skip
def test_a_wrong_number_is_found_where_it_enters(change, expected):
    found = mb.compare(own(**change), twin(), coordinates="order", states=3)
    assert set(found.differing) == expected
    assert not found.agrees


def test_the_worst_state_shows_the_difference():
    wrong = own(mass=1.2)
    found = mb.compare(wrong, twin(), coordinates="order", states=4)
    worst = found["mass_matrix"]
    model = mujoco.MjModel.from_xml_string(twin())
    data, M = mujoco.MjData(model), np.zeros((3, 3))
    data.qpos = worst.other_state.q
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, M)
    here = np.array(wrong.mass_matrix(worst.state.q))
    assert np.allclose(worst.other_value, M, rtol=0, atol=1e-12)
    assert np.allclose(worst.value, here, rtol=0, atol=1e-12)
    assert worst.scale == pytest.approx(np.abs(M).max())
    root = np.sqrt(np.diag(M))
    error = np.abs((here - M) / np.outer(root, root)).max()
    assert worst.error == pytest.approx(error, rel=1e-9)
    for name in ("q", "v", "u"):
        assert getattr(worst.state, name).shape == (3,)


def test_coordinates_and_controls_in_another_order_are_matched_by_name():
    turned = {"q_1": "crank", "q_0": "coupler", "q_2": "rocker"}
    found = mb.compare(own(order=(1, 0, 2)), twin(), coordinates=turned, states=3,
                       allow_missing=())  # fmt: skip
    # controls of own equations have no names: the order of q says which is which
    assert set(found.differing) == {"actuation", "actuator_force"}
    models = mb.compare(twin(), twin(order=JOINTS[::-1]), states=3)
    assert models.agrees, str(models)
    assert np.allclose(models["actuation"].other_value, np.eye(3)[:, ::-1])


def test_the_sides_may_be_given_in_any_order():
    back = {joint: name for name, joint in NAMES.items()}
    assert mb.compare(twin(), own(), coordinates=back, states=3).agrees


def test_two_systems_and_two_models_are_compared():
    assert mb.compare(own(), own(), states=3).agrees
    assert not mb.compare(own(), own(mass=1.2), states=3).agrees
    assert mb.compare(mb.read_mjcf(twin()), own(), coordinates="order", states=3).agrees
    spec = mujoco.MjSpec.from_string(twin())
    assert mb.compare(spec, spec.compile(), states=3).agrees
    damped = mb.compare(twin(), twin(damping="0.21"), states=3)
    assert damped.differing == ("passive_force",)


def test_what_only_one_side_has_is_named_and_may_be_allowed():
    found = mb.compare(own(closed=False), twin(), coordinates="order", states=2)
    rows = ("constraint", "constraint_jacobian", "constraint_bias")
    assert found.not_compared == rows
    assert found["constraint"].note == "lagrangian has none: it has 0 rows, twin has 3"
    allowed = mb.compare(own(closed=False), twin(), coordinates="order", states=2,
                         allow_missing=rows)  # fmt: skip
    assert allowed.agrees
    with pytest.raises(UnknownNameError, match="unknown quantity 'mass'"):
        mb.compare(twin(), twin(), states=1, allow_missing=["mass"])


def test_models_with_other_joints_are_refused_by_name():
    body = '<body><joint name="crank"/><geom size="1"/></body>'
    short = f'<mujoco model="short"><worldbody>{body}</worldbody></mujoco>'
    with pytest.raises(ModelError, match="coupler, rocker in the first only, none in the second"):
        mb.compare(twin(), short)
    slide = twin().replace('name="rocker" axis', 'name="rocker" type="slide" axis')
    with pytest.raises(ModelError, match="'rocker' of twin is a hinge, 'rocker' of twin a slide"):
        mb.compare(twin(), slide)
    with pytest.raises(ProblemError, match='or coordinates="order"'):
        mb.compare(own(), twin())
    with pytest.raises(ProblemError, match="expected a mapping"):
        mb.compare(own(), twin(), coordinates="names")


def test_the_outcome_is_one_line_a_table_and_data():
    found = mb.compare(own(mass=1.2), twin(), coordinates="order", states=2)
    assert repr(found).startswith("ModelAgreement('lagrangian' and 'twin': 5 of 15 quantities")
    assert "\n" not in repr(found)
    assert "<td>mass_matrix</td>" in found._repr_html_()
    assert "DIFFERS" in str(found)
    assert found.to_dict()["differing"] == list(found.differing)


def test_check_against_another_model_has_the_exit_status_of_the_comparison(tmp_path):
    first, other = tmp_path / "first.xml", tmp_path / "other.xml"
    first.write_text(twin())
    for damping, status in (("0.2", 0), ("0.3", 1)):
        other.write_text(twin(damping=damping))
        command = ["check", str(first), "--against", str(other), "--states", "2"]
        result = CliRunner().invoke(app, command)
        assert result.exit_code == status, result.output
    assert "passive_force" in result.output


def test_the_program_of_the_page_on_models_prints_what_it_says():
    heading = "## Two models against each other"
    blocks = blocks_of("guides/models.md", first=heading, last=heading)
    assert len(blocks) == 1
    assert_blocks_print_what_they_show(blocks, {})
