"""Contacts of convex shapes by iteration: laws of the gap, derivatives, generated C."""

import casadi as ca
import numpy as np
import pytest
from support.compiled import all_compiled

import mbcasadi as mb
from mbcasadi.errors import ProblemError

PAIR = """
<mujoco>
  <asset><mesh name="stone" vertex="-.1 -.15 -.1 .2 -.1 -.1 0 .2 -.1 .05 0 .25"/></asset>
  <worldbody>
    <body name="b1"><freejoint/>
      <geom name="g1" {first} pos=".05 -.02 .03" euler="40 20 -30"/></body>
    <body name="b2" pos=".5 .1 .2"><freejoint/><geom name="g2" {second}/></body>
  </worldbody>
</mujoco>
"""
SHAPES = {
    "capsule": 'type="capsule" size=".07 .25"',
    "ellipsoid": 'type="ellipsoid" size=".1 .25 .15"',
    "cylinder": 'type="cylinder" size=".12 .2"',
    "box": 'type="box" size=".1 .25 .15"',
    "mesh": 'type="mesh" mesh="stone"',
}
PAIRS = [
    ("capsule", "ellipsoid"), ("capsule", "cylinder"), ("capsule", "box"),
    ("ellipsoid", "ellipsoid"), ("ellipsoid", "cylinder"), ("ellipsoid", "box"),
    ("cylinder", "cylinder"), ("cylinder", "box"), ("box", "box"),
    ("capsule", "mesh"), ("box", "mesh"), ("mesh", "mesh"),
]  # fmt: skip
SMOOTHING = 2e-3  # m, of most tests: edges are so round that differences see them
STEP = 1e-5  # of central differences
DIFFERENCE = 1e-4  # relative: the residual of the iteration by the step
RESIDUAL = 1e-7  # rad: the normal after the iteration
ROUNDING = 1e-9


@pytest.fixture(scope="module", params=PAIRS, ids="-".join)
def system(request):
    first, second = (SHAPES[kind] for kind in request.param)
    return mb.read_mjcf(PAIR.format(first=first, second=second))


def states(system, count, contact):
    """Return configurations of bodies apart and slightly overlapping, with velocities."""
    rng, found = np.random.default_rng(1), []
    while len(found) < count:
        q = np.array(system.integrate(system.tree.q0, rng.normal(size=system.nv))).ravel()
        gap, _, normal = (np.array(x).ravel() for x in contact.gap(q))
        wanted = rng.uniform(0, 0.3) if len(found) % 3 else -rng.uniform(0, 0.02)
        q[7:10] += (wanted - gap) * normal
        found.append((q, rng.normal(size=system.nv)))
    return found


@pytest.mark.every(3)
def test_rates_and_biases_are_the_changes_along_a_motion(system):
    (contact,) = mb.contacts_of(system, smoothing=SMOOTHING)
    overlapping = 0
    for q, v in states(system, 12, contact):
        ends = [np.array(system.integrate(q, s * STEP * v)).ravel() for s in (1, -1)]

        def rate(value, ends=ends):
            after, before = (np.array(value(end)).ravel() for end in ends)
            return (after - before) / (2 * STEP)

        pairs = [
            (contact.gap_jacobian(q) @ v, rate(lambda end: contact.gap(end)[0])),
            (contact.gap_bias(q, v), rate(lambda end, v=v: contact.gap_jacobian(end) @ v)),
            (contact.bias(q, v), rate(lambda end, v=v: contact.jacobian(end) @ v)),
        ]
        for ours, expected in pairs:
            bound = DIFFERENCE * (1 + np.abs(expected).max())
            np.testing.assert_allclose(np.array(ours).ravel(), expected, rtol=0, atol=bound)
        overlapping += float(contact.gap(q)[0]) < 0
    assert overlapping


def test_derivatives_by_casadi_are_those_of_the_motion(system):
    (contact,) = mb.contacts_of(system, smoothing=SMOOTHING)
    q = ca.SX.sym("q", system.nq)
    gap, point, normal = contact.gap(q)
    rates = ca.Function("rates", [q], [ca.jacobian(ca.vertcat(gap, point, normal), q)])
    ((at, v),) = states(system, 1, contact)
    along = np.array(rates(at) @ system.velocity_map(at) @ v).ravel()
    ends = [
        np.concatenate([np.array(x) for x in contact.gap(system.integrate(at, s * STEP * v))])
        for s in (1, -1)
    ]
    expected = (ends[0] - ends[1]).ravel() / (2 * STEP)
    np.testing.assert_allclose(along, expected, atol=DIFFERENCE * (1 + np.abs(expected).max()))


@pytest.mark.every(5)
def test_rounded_edges_take_at_most_the_smoothing_and_a_common_motion_changes_nothing(system):
    sharp, smooth = (mb.contacts_of(system, smoothing=s)[0] for s in (0.0, SMOOTHING))
    turned = system.integrate(system.tree.q0, np.r_[0.1, -0.2, 0.3, 0.5, -0.4, 0.8, np.zeros(6)])
    turn = np.array(system.frame("b1", "body").pose(turned)[1])
    start = np.array(system.frame("b1", "body").pose(system.tree.q0)[1])
    for q, _ in states(system, 6, sharp):
        gaps = [float(contact.gap(q)[0]) for contact in (sharp, smooth)]
        assert -ROUNDING <= gaps[0] - gaps[1] <= SMOOTHING
        moved = q.copy()
        R, shift = turn @ start.T, np.array([0.3, -0.1, 0.2])
        for k in (0, 7):
            moved[k : k + 3] = R @ q[k : k + 3] + shift
            moved[k + 3 : k + 7] = product(quaternion(R), q[k + 3 : k + 7])
        before, after = ([np.array(x).ravel() for x in smooth.gap(at)] for at in (q, moved))
        assert after[0] == pytest.approx(before[0], abs=ROUNDING)
        np.testing.assert_allclose(after[1], R @ before[1] + shift, atol=RESIDUAL)
        np.testing.assert_allclose(after[2], R @ before[2], atol=RESIDUAL)


def quaternion(R):
    w = np.sqrt(1 + np.trace(R)) / 2
    return np.r_[w, np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4 * w)]


def product(a, b):
    return np.r_[a[0] * b[0] - a[1:] @ b[1:], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])]


@pytest.mark.parametrize("second", ["ellipsoid", "mesh"])
@pytest.mark.every(2)
def test_the_generated_c_gives_the_same_numbers(second, tmp_path):
    system = mb.read_mjcf(PAIR.format(first=SHAPES["capsule"], second=SHAPES[second]))
    (contact,) = mb.contacts_of(system)
    members = [contact.gap, contact.gap_jacobian, contact.gap_bias, contact.bias]
    c = all_compiled(members, tmp_path)
    for q, v in states(system, 3, contact):
        for member in members:
            arguments = [q, v][: member.n_in()]
            for ours, theirs in zip(
                member.call([ca.DM(x) for x in arguments]),
                c[member.name()].call([ca.DM(x) for x in arguments]),
                strict=True,
            ):
                scale = 1 + np.abs(np.array(ours)).max()
                np.testing.assert_allclose(np.array(theirs), np.array(ours), atol=RESIDUAL * scale)


@pytest.mark.every(3)
def test_derivatives_are_numbers_where_centres_meet(system):
    (contact,) = mb.contacts_of(system)
    q = system.tree.q0.copy()
    q[7:10] = np.array(system.frame("g1", "geom").pose(q)[0]).ravel()
    outputs = contact.gap_bias.call([ca.DM(q), ca.DM(np.linspace(-1, 1, system.nv))])
    outputs += contact.gap.call([ca.DM(q)])
    assert all(np.all(np.isfinite(np.array(x))) for x in outputs)
    with pytest.raises(ProblemError, match="smoothing = -1"):
        mb.contacts_of(system, smoothing=-1.0)
