"""Spatial tendons: MuJoCo's lengths and rows, at the edges of wrapping too; derivatives."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from support.agreement import assert_agrees
from support.compiled import compiled
from support.hard_cases import mjcf
from support.spatial_tendons import CASES, WRAPPING, WRAPS

from mbcasadi import mjcf as reader
from mbcasadi import model
from mbcasadi.errors import ModelError, UnsupportedFeatureError
from mbcasadi.model.transmission import tendon_bias, tendon_row
from mbcasadi.system import read_mjcf

AGREES = 1e-9  # relative to the largest entry
INSIDE = 1e-6  # rad, MuJoCo's own tolerance of the point of contact inside, and so ours
DIFFERENCE = 1e-6  # relative, of central differences
STEP = 1e-6
EDGE = 1e-6  # m, next to where wrapping begins


class Tendons:
    """Length, row, and rates of all tendons of a model, beside MuJoCo's."""

    def __init__(self, xml):
        self.compiled = mujoco.MjModel.from_xml_string(xml)
        self.data = mujoco.MjData(self.compiled)
        self.tree = tree = reader.read(self.compiled).tree
        q, v = ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv)
        length = ca.vertcat(*(model.tendon_length(tree, t, q) for t in tree.tendons))
        row = ca.vertcat(*(tendon_row(tree, t, q) for t in tree.tendons))
        bias = ca.vertcat(*(tendon_bias(tree, t, q, v) for t in tree.tendons))
        N = model.velocity_map(tree, q)
        outputs = [length, row, bias, ca.jacobian(length, q) @ N, ca.jacobian(row @ v, q) @ N]
        names = ["length", "row", "bias", "gradient", "turning"]
        self.all = ca.Function("tendons", [q, v], outputs, ["q", "v"], names, {"cse": True})
        self.path = self.all.factory("path", ["q", "v"], ["length", "row"])
        self.step = ca.Function("step", [q, v], [model.integrate(tree, q, v)])

    def at(self, q, v):
        values = self.all(q=q, v=v)
        return {name: np.array(value) for name, value in values.items()}

    def mujoco(self, q):
        """Return MuJoCo's lengths, rows, and whether each tendon touches a geom."""
        m, d = self.compiled, self.data
        d.qpos[:] = q
        mujoco.mj_forward(m, d)
        rows = np.zeros((m.ntendon, m.nv))
        sparse = d.ten_J.ravel()
        for i in range(m.ntendon):
            places = slice(m.ten_J_rowadr[i], m.ten_J_rowadr[i] + m.ten_J_rownnz[i])
            rows[i, m.ten_J_colind[places]] = sparse[places]
        objects = d.wrap_obj.ravel()
        spans = [slice(a, a + n) for a, n in zip(d.ten_wrapadr, d.ten_wrapnum, strict=True)]
        return np.array(d.ten_length), rows, np.array([np.any(objects[s] >= 0) for s in spans])

    def states(self, count, seed=4):
        rng = np.random.default_rng(seed)
        for _ in range(count):
            q = np.concatenate([0.4 * rng.normal(size=3), rng.normal(size=4), rng.normal(size=1)])
            q[3:7] /= np.linalg.norm(q[3:7])
            yield q, 2.0 * rng.normal(size=self.tree.nv)


@pytest.fixture(scope="module")
def wraps():
    return Tendons(WRAPPING)


@pytest.mark.parametrize("name", CASES)
def test_every_member_agrees_with_mujoco(name):
    assert_agrees(name, CASES[name])


def test_lengths_and_rows_are_mujocos_whether_tendons_wrap_or_not(wraps):
    touching = []
    for q, v in wraps.states(400):
        length, row, touches = wraps.mujoco(q)
        ours = wraps.at(q, v)
        np.testing.assert_allclose(ours["length"].ravel(), length, rtol=AGREES)
        np.testing.assert_allclose(ours["row"], row, atol=AGREES * abs(row).max())
        touching.append(touches)
    share = np.mean(touching, axis=0)
    assert np.all((share > 0.03) & (share < 0.97)), dict(zip(WRAPS, share, strict=True))


def test_rows_are_gradients_and_biases_are_rates(wraps):
    outside = ["inside" not in name and "moves" not in name for name in WRAPS]
    for q, v in wraps.states(12):
        ours = wraps.at(q, v)
        error = abs(ours["gradient"] - ours["row"]).max(axis=1)
        assert error[outside].max() < AGREES
        assert error.max() < 2 * INSIDE
        ahead, behind = (
            np.array(wraps.at(wraps.step(q, s * STEP * v), v)["row"]) for s in (1.0, -1.0)
        )
        expected = (ahead - behind) @ v / (2 * STEP)
        scale = max(1.0, abs(expected).max())
        np.testing.assert_allclose(ours["bias"].ravel(), expected, atol=DIFFERENCE * scale)


def test_derivatives_of_rows_are_their_differences(wraps):
    for q, v in wraps.states(4, seed=7):
        ours = wraps.at(q, v)["turning"]
        columns = []
        for direction in np.eye(wraps.tree.nv):
            ahead, behind = (
                np.array(wraps.at(wraps.step(q, s * STEP * direction), v)["row"]) @ v
                for s in (1.0, -1.0)
            )
            columns.append((ahead - behind) / (2 * STEP))
        expected = np.stack(columns, axis=1)
        np.testing.assert_allclose(ours, expected, atol=DIFFERENCE * abs(expected).max())


def test_generated_c_is_the_function(wraps, tmp_path):
    library = compiled(wraps.path, tmp_path)
    for q, v in wraps.states(20):
        for ours, c in zip(wraps.path(q, v), library(q, v), strict=True):
            scale = max(1.0, abs(np.array(ours)).max())
            np.testing.assert_allclose(np.array(c), np.array(ours), atol=1e-11 * scale)


SLIDER = (
    '<body name="drum"><joint type="slide" axis="0 0 1"/>'
    '<geom name="g" type="{kind}" size=".1 .2" mass="1" euler="90 0 0"/>'
    '<site name="side" pos="0 0 {side}"/></body>'
    '<body><joint type="slide" axis="1 0 0"/><geom size=".01" mass="1" pos="0 3 0"/>'
    '<site name="a" pos="-.3 0 0"/></body><site name="c" pos=".4 0 0"/>'
    '<site name="o" pos="0 0 0"/>'
)


def slider(kind, side):
    """Return a tendon along x that a geom reaches from below as it slides along z."""
    options = "" if side is None else ' sidesite="side"'
    path = f'<site site="a"/><geom geom="g"{options}/><site site="c"/>'
    world = SLIDER.format(kind=kind, side=side or 1.0)
    return Tendons(mjcf(world, f"<tendon><spatial>{path}</spatial></tendon>"))


@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
@pytest.mark.parametrize(("side", "begins"), [(None, True), (0.5, True), (0.01, False)])
def test_both_sides_of_where_wrapping_begins_are_mujocos(kind, side, begins):
    tendons = slider(kind, side)
    rates = []
    for distance in (-EDGE, EDGE):
        q, v = np.array([-0.1 + distance, 0.0]), np.array([1.0, 0.0])
        length, row, touches = tendons.mujoco(q)
        assert bool(touches[0]) is ((distance > 0) is begins)
        ours = tendons.at(q, v)
        np.testing.assert_allclose(ours["length"].ravel(), length, atol=AGREES)
        tolerance = AGREES if begins else INSIDE
        np.testing.assert_allclose(ours["row"], row, atol=tolerance)
        rates.append(ours["turning"][0, 0])
    straight, bent = rates if begins else reversed(rates)
    assert abs(straight) < 1e-9
    assert bent > 1.0  # the derivative of the row has a jump there
    assert np.all(np.isfinite(tendons.at(np.array([-0.1, 0.0]), v)["turning"]))


@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
@pytest.mark.parametrize("side", [None, 0.5, -0.5, 0.01])
def test_all_is_finite_where_mujoco_has_special_cases(kind, side):
    tendons = slider(kind, side)
    for name, place in {
        "ends on a line through the centre": [0.0, 0.0],
        "an end on the surface": [0.0, 0.2],
        "an end inside": [0.01, 0.25],
        "an end at the centre": [0.0, 0.3],
    }.items():
        length, row, _ = tendons.mujoco(np.array(place))
        ours = tendons.at(np.array(place), np.ones(2))
        np.testing.assert_allclose(ours["length"].ravel(), length, err_msg=name)
        # Through the centre both ways are equally long, and rounding chooses one.
        rows = (abs(ours["row"]), abs(row)) if "line" in name else (ours["row"], row)
        np.testing.assert_allclose(*rows, atol=AGREES, err_msg=name)
        assert all(np.all(np.isfinite(value)) for value in ours.values()), name


def test_ends_at_one_place_pull_along_x_as_in_mujoco():
    world = (
        '<body><joint type="slide" axis="1 .5 0"/><geom size=".1"/><site name="one"/></body>'
        '<site name="two"/>'
    )
    path = '<spatial><site site="one"/><site site="two"/></spatial>'
    tendons = Tendons(mjcf(world, f"<tendon>{path}</tendon>"))
    length, row, _ = tendons.mujoco(np.zeros(1))
    ours = tendons.at(np.zeros(1), np.ones(1))
    assert ours["length"] == length == 0.0
    assert row != 0.0
    np.testing.assert_allclose(ours["row"], row)
    assert all(np.all(np.isfinite(value)) for value in ours.values())


def test_an_edited_model_that_mujoco_would_not_compile_has_its_error():
    compiled_model = mujoco.MjModel.from_xml_string(WRAPPING)
    compiled_model.tendon_armature[3] = 0.1
    with pytest.raises(UnsupportedFeatureError, match=r"tendon 'cylinder': armature .* to 0"):
        read_mjcf(compiled_model)
    compiled_model = mujoco.MjModel.from_xml_string(WRAPPING)
    compiled_model.wrap_prm[compiled_model.wrap_type == mujoco.mjtWrap.mjWRAP_PULLEY] = 0.0
    with pytest.raises(ModelError, match="tendon 'pulleys': a pulley with divisor 0"):
        read_mjcf(compiled_model)


def test_coverage_lists_what_a_path_does():
    features = [item.feature for item in read_mjcf(WRAPPING).coverage.by("used")]
    for what in ("spatial tendon", "wrapping", "side site", "pulley", "stiffness"):
        assert any(f.startswith("tendon") and f.endswith(f": {what}") for f in features), what
    across = read_mjcf(CASES["armature between branches"]).coverage.by("used")
    assert "tendon 'rope': armature across branches" in [item.feature for item in across]
