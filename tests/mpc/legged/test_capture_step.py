"""A foot that is put down where the robot would fall: a puppet whose trunk is moved by a script.

Its legs are slides upwards and follow the reference exactly; capture point, triangle of the feet
and way of the foot are computed here in NumPy.
"""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.control import FrameTask, InverseDynamicsQP
from mbcasadi.errors import ProblemError, UnknownNameError

H, HEIGHT, UP = 2e-3, 0.4, 0.06  # s, m, m
MASS, FOOT = 9.0, 0.01  # kg
REST = np.array([-0.05, -0.04])  # m, of the trunk, over the feet that stand
PLACES = np.array([[0.2, 0.15], [0.2, -0.15], [-0.2, 0.15], [-0.2, -0.15]])
NAMES = ("FL", "FR", "RL", "RR")
STEP = mpc.StepParameters()
LEG = """<body name="{0}" pos="{1} {2} -.4"><joint name="{0}" type="slide" axis="0 0 1"/>
  <geom size=".02" mass=".01"/><site name="{0}"/></body>"""


def puppet(names):
    """Return a trunk of 9 kg on legs of 10 g."""
    places = zip(names, PLACES - REST, strict=False)
    legs = "".join(LEG.format(name, *place) for name, place in places)
    motors = "".join(f'<motor joint="{name}"/>' for name in names)
    return mb.read_mjcf(
        '<mujoco><worldbody><body name="trunk" pos="0 0 .4"><freejoint/>'
        f'<geom size=".1" mass="9"/>{legs}</body></worldbody><actuator>{motors}</actuator></mujoco>'
    )


def law_of(names, position="xyz", normal=(0.0, 0.0, 1.0)):
    tasks = [FrameTask(name, position=position, orientation="") for name in names]
    contacts = [mb.Contact(name, normal=normal) for name in names]
    return InverseDynamicsQP(puppet(names), tasks, contacts, period=H)


@pytest.fixture(scope="module")
def law():
    return law_of(NAMES)


def pose(heights):
    """Return q with the trunk over the feet that stand, and the feet at their heights (4,)."""
    return np.r_[REST, HEIGHT, 1, 0, 0, 0, heights]


def schedule(law):
    """Return the reference with the first foot in the air, and its mask."""
    return law.reference_at(pose([UP, 0, 0, 0])), np.array([0.0, 1, 1, 1])


def play(law, function, z0, velocity):
    """Return places, mask and phase of the first foot tick by tick, for speeds of the robot."""
    (ref, mask), height = schedule(law), UP
    z, place = z0, law.reference_slices["FL.position"]
    same = np.delete(np.arange(law.nref), np.r_[place.start : place.start + 9])
    found = []
    for speed in velocity:
        force = np.zeros(12)
        force[0] = 40.0 if height <= 0 else 0.0
        v = np.r_[speed, np.zeros(8)]
        out = function(pose([height, 0, 0, 0]), v, force, ref, mask, z)
        wanted, on, z = (np.array(each).ravel() for each in out)
        if height > 0 or not on[0]:
            height = max(wanted[place][2], 0.0)
        np.testing.assert_array_equal(wanted[same], ref[same])
        np.testing.assert_array_equal(on[1:], 1)
        found.append(np.r_[wanted[place], on[0], z[0]])
    return np.array(found)


def edge_distance(velocity):
    """Return how far capture points are inside the diagonal from front right to rear left, (n,)."""
    whole = MASS + 4 * FOOT
    centre = (MASS * REST + FOOT * PLACES.sum(axis=0)) / whole
    height = (MASS * HEIGHT + FOOT * UP) / whole
    xi = centre + velocity / np.sqrt(9.81 / height)
    (x, y), away = PLACES[1] - PLACES[2], xi - PLACES[1]
    return (y * away[:, 0] - x * away[:, 1]) / np.hypot(x, y)


def test_a_robot_that_does_not_fall_keeps_its_schedule(law):
    function, z0 = mpc.capture_step(law, NAMES)
    found = play(law, function, z0, np.tile([0.0, 0.05], (20, 1)))
    np.testing.assert_allclose(found, np.tile([*PLACES[0], UP, 0, 0], (20, 1)), atol=1e-15)


def test_the_foot_is_lowered_stands_and_rises_again(law):
    """A push towards the foot, then rest: each phase begins when NumPy says so."""
    function, z0 = mpc.capture_step(law, NAMES)
    n, pushed, rests = 600, 100, 150
    speed = np.zeros((n, 2))
    speed[50:pushed] = np.outer(np.linspace(0, 0.6, pushed - 50), [0, 1])
    speed[pushed:rests] = [0, 0.3]
    found, margin = play(law, function, z0, speed), edge_distance(speed)
    phase, on = found[:, 4], found[:, 3]
    falls = int(np.flatnonzero(margin < STEP.least)[0])
    assert 50 < falls < pushed
    assert np.all(phase[:falls] == 0)
    assert phase[falls] == 1
    way = [6, -15, 10, 0, 0, -UP / (UP + STEP.depth)]
    share = next(s.real for s in np.roots(way) if abs(s.imag) < 1e-9 and 0 < s.real < 1)
    touches = int(np.flatnonzero(on)[0])
    assert touches == falls + int(np.ceil(share * STEP.lowering / H)) + 1  # felt one tick later
    assert np.all(np.diff(found[falls:touches, 2]) <= 1e-12)
    outwards = found[touches - 1, :2] - PLACES[0]
    assert 0.02 < outwards[1] <= STEP.reach
    assert abs(outwards[0]) < 1e-9
    assert np.all(margin[rests:] > STEP.calm)
    raised = rests + round(STEP.pause / H)
    assert np.all(on[touches : raised - 1] == 1)
    assert abs(int(np.flatnonzero(phase == 2)[0]) - raised) <= 1
    assert np.all(on[raised + 1 :] == 0)
    np.testing.assert_allclose(found[-1], [*PLACES[0], UP, 0, 0], atol=1e-12)


def test_a_bad_measurement_changes_nothing_that_is_remembered(law):
    function, z0 = mpc.capture_step(law, NAMES)
    ref, mask = schedule(law)
    for bad in (np.nan, np.inf, 1e300):
        q = pose([UP, 0, 0, 0])
        q[1] = bad
        z = np.array(function(q, np.zeros(10), np.zeros(12), ref, mask, z0)[2]).ravel()
        np.testing.assert_array_equal(z, z0)


def test_a_state_that_is_no_number_starts_again(law):
    """In the middle of a way down, where place and time of its start count."""
    function, z0 = mpc.capture_step(law, NAMES)
    (ref, mask), q, still = schedule(law), pose([UP, 0, 0, 0]), np.zeros(10)
    falls = np.r_[0, 0.6, np.zeros(8)]
    lowered = np.array(function(q, falls, np.zeros(12), ref, mask, z0)[2]).ravel()
    assert lowered[0] == 1
    for place in range(lowered.size // len(NAMES)):
        for bad in (np.nan, np.inf, -1e300):
            z = lowered.copy()
            z[place] = bad
            found = [np.array(x).ravel() for x in function(q, still, np.zeros(12), ref, mask, z)]
            for got, expected in zip(found[:2], (ref, mask), strict=True):
                np.testing.assert_array_equal(got, expected, f"z[{place}] = {bad}")
            assert np.all(np.isfinite(found[2]))


def test_the_generated_c_is_the_function(law, tmp_path):
    function, z0 = mpc.capture_step(law, NAMES)
    compiled = mb.export_c(function, tmp_path / "step").load(flags=("-O0",))
    rng, (ref, mask) = np.random.default_rng(0), schedule(law)
    z, phases = z0, set()
    for k in range(40):
        speed = np.r_[rng.standard_normal(2) * (k % 3 > 0), np.zeros(8)]
        force = 20.0 * rng.random(12) * (k % 5 > 0)
        given = pose([UP, 0, 0, 0]), speed, force, ref, mask, z
        expected, got = function(*given), compiled(*given)
        for in_c, own in zip(got, expected, strict=True):
            np.testing.assert_allclose(np.array(in_c), np.array(own), atol=1e-12)
        z = np.array(expected[2]).ravel()
        phases.add(z[0])
    assert phases >= {0.0, 1.0}


def test_what_is_no_robot_on_its_feet_is_refused(law):
    with pytest.raises(UnknownNameError, match="FrameTask"):
        mpc.capture_step(law, ("FL", "FR", "RL", "tail"))
    with pytest.raises(ProblemError, match="3 feet, 4 contacts"):
        mpc.capture_step(law, NAMES[:3])
    with pytest.raises(ProblemError, match="calm"):
        mpc.StepParameters(calm=0.0)
    with pytest.raises(ProblemError, match="position 'xz'"):
        mpc.capture_step(law_of(NAMES[:1], position="xz"), NAMES[:1])
    with pytest.raises(ProblemError, match="level floor"):
        mpc.capture_step(law_of(NAMES[:1], normal=(0.1, 0.0, 1.0)), NAMES[:1])
