"""Footholds by the capture point, on a linear inverted pendulum that is integrated exactly here."""

import casadi as ca
import numpy as np
import pytest

from mbcasadi.errors import ProblemError
from mbcasadi.mpc import CaptureFoothold, Gait, SwingParameters, trot
from mbcasadi.mpc.legged.capture_foothold import PlanarMotion, nominal_offset, supports
from mbcasadi.mpc.legged.footsteps import Footholds, Motion
from mbcasadi.mpc.legged.nominal_stance import NominalStance

HEIGHT, G = 0.8, 9.81
OMEGA = np.sqrt(G / HEIGHT)
TWO = np.array([[0.02, 0.1], [0.02, -0.1]])  # feet below the hips of a biped, m
FOUR = np.array([[0.2, 0.1], [0.2, -0.1], [-0.2, 0.1], [-0.2, -0.1]])
BIPED = Gait(0.7, 0.5, (0.0, 0.5))  # one foot at a time: the support never lies in between
GAITS = {
    "biped": (BIPED, TWO),
    "biped with double support": (Gait(0.7, 0.6, (0.0, 0.5)), TWO),
    "trot": (trot(0.48, 0.55), FOUR),
    "walk": (Gait(1.0, 0.8, (0.0, 0.5, 0.25, 0.75)), FOUR),
}
SPEED, SPIN = np.array([0.4, -0.1]), 0.1  # m/s, rad/s
LEANS = [(0.0, 0.0, -G), (0.8, -0.5, -G)]  # m/s²
JUST_AFTER = 1e-9  # s, a switch
FINE = 2000  # steps of a period in the integration


def nominal_support(gait, hips, t):
    """Return the mean of the feet on the ground at t for a body on an arc: SPEED and SPIN."""
    places = []
    for hip, offset in zip(hips, gait.offsets, strict=True):
        age = ((t / gait.period + offset) % 1.0) * gait.period
        if age < gait.stance:  # in mid-stance the foot is below its hip
            places.append(body_at(t - age + gait.stance / 2, hip))
    return np.mean(places, axis=0)


def body_at(t, point):
    """Return where a point of the body is at t, exactly: its velocity turns with it."""
    angle = SPIN * t
    c, s = np.cos(angle), np.sin(angle)
    way = np.array([[s, c - 1], [1 - c, s]]) @ SPEED / SPIN
    return way + np.array([[c, -s], [s, c]]) @ point


@pytest.mark.parametrize("name", GAITS)
def test_the_nominal_motion_is_the_one_that_stays_bounded(name):
    """Backwards in time the capture point is stable: from anywhere it comes to that motion."""
    gait, hips = GAITS[name]
    h, periods = gait.period / FINE, int(np.ceil(4.0 / gait.period))
    point, found = np.array([5.0, -5.0]), {}
    for k in reversed(range(periods * FINE)):
        middle = nominal_support(gait, hips, (k + 0.5) * h)
        point = middle + (point - middle) * np.exp(-OMEGA * h)
        found[k] = point
    phase, turn = ca.SX.sym("phase"), ca.SX.sym("yaw")
    parts = supports(gait, hips, OMEGA)
    c, s = ca.cos(turn), ca.sin(turn)
    speed = ca.vertcat(c * SPEED[0] - s * SPEED[1], s * SPEED[0] + c * SPEED[1])
    motion = PlanarMotion(turn, speed, ca.SX(SPIN))
    offset = ca.Function(
        "offset", [phase, turn], [nominal_offset(parts, gait, OMEGA, phase, motion)]
    )
    for share in (0.013, 0.17, 0.33, 0.51, 0.77, 0.93):
        t = share * gait.period
        away = found[round(share * FINE)] - nominal_support(gait, hips, t)
        nominal = np.array(offset(share, SPIN * t)).ravel()
        np.testing.assert_allclose(nominal, away, atol=5e-4)


def footholds(gait, hips, gravity=(0.0, 0.0, -G), **options):
    """Return (t, x, yaw, velocity, spin, places) → (targets): the footholds as a Function."""
    n = len(hips)
    places = np.column_stack([hips, np.zeros(n)])
    stance = NominalStance(np.eye(3), np.array([0, 0, HEIGHT]), 0.0, places, hips, np.zeros(3))
    stepping = SwingParameters(
        **{"reach": 10.0, "capture": CaptureFoothold(least_width=0.0)} | options
    )
    feet = tuple((i,) for i in range(n))
    holds = Footholds(gait, stepping, stance, np.array(gravity), feet)
    sizes = {"t": 1, "x": 12, "yaw": 1, "velocity": 2, "spin": 1, "places": 3 * n}
    s = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    now = Motion(s["t"], s["x"], s["yaw"], s["velocity"], s["spin"], gait.swing_share(s["t"]))
    targets = holds.targets(now, ca.vertsplit(s["places"], 3), [ca.SX(0)] * n, [])
    return ca.Function("footholds", list(s.values()), [ca.horzcat(*targets).T], list(s), ["out"])


class Pendulum:
    """A point mass on the foot that stands; each landing takes the foothold of its last moment."""

    def __init__(self, gait, hips, gravity=(0.0, 0.0, -G), **options):
        self.gait, self.gravity = gait, np.array(gravity)
        self.holds = footholds(gait, hips, gravity, **options)
        self.places = np.column_stack([hips, np.zeros(len(hips))])
        self.c, self.v = np.zeros(2), np.zeros(2)

    def state(self):
        return np.r_[0, 0, 0, self.c, HEIGHT, 0, 0, 0, self.v, 0]

    def targets(self, t, velocity):
        out = self.holds(t, self.state(), 0.0, velocity, 0.0, self.places.ravel())
        return np.array(out)

    def walk(self, strides, velocity, push=None, per=100):
        """Return the capture point from the support at each landing."""
        h, found = self.gait.period / per, []
        for k in range(strides * per):
            t = (k + 0.5) * h
            on = np.array(self.gait.on_ground(t)).ravel() > 0.5
            targets = self.targets(k * h + JUST_AFTER, velocity)
            later = np.array(self.gait.on_ground(t + h)).ravel() > 0.5
            if push is not None and k == push[0]:
                self.v = self.v + push[1]
            p = self.places[on, :2].mean(axis=0) - self.gravity[:2] / OMEGA**2
            cosh, sinh = np.cosh(OMEGA * h), np.sinh(OMEGA * h)
            away = self.c - p
            self.c, self.v = (
                p + cosh * away + sinh * self.v / OMEGA,
                OMEGA * sinh * away + cosh * self.v,
            )
            landing = later & ~on
            self.places[landing] = targets[landing]
            if landing.any():
                found.append(self.c + self.v / OMEGA - self.places[later, :2].mean(axis=0))
        return np.array(found)


def test_a_foot_lands_where_the_point_has_the_nominal_distance_from_it():
    """For any state: the pendulum runs on its foot to the landing, in closed form."""
    rng, t = np.random.default_rng(0), 0.1  # the left foot stands until 0.35 s
    left = BIPED.flight - t
    away = []
    for _ in range(5):
        pendulum = Pendulum(BIPED, TWO)
        pendulum.c, pendulum.v = 0.05 * rng.standard_normal(2), 0.3 * rng.standard_normal(2)
        pendulum.places[:, :2] += 0.05 * rng.standard_normal((2, 2))
        foothold = pendulum.targets(t, SPEED)[1, :2]
        foot = pendulum.places[0, :2]
        point = pendulum.c + pendulum.v / OMEGA
        away.append(foot + (point - foot) * np.exp(OMEGA * left) - foothold)
    np.testing.assert_allclose(away, np.tile(away[0], (5, 1)), atol=1e-10)
    across = 0.2 / (1 + np.exp(OMEGA * BIPED.flight))  # of a biped in place, Englsberger's eq.
    along = 0.35 * SPEED / (np.exp(OMEGA * BIPED.flight) - 1)
    np.testing.assert_allclose(away[0], np.add(along, [0, across]), atol=1e-10)


@pytest.mark.parametrize("gravity", LEANS)
def test_a_push_is_caught_and_without_the_capture_point_it_is_not(gravity):
    push = (330, np.array([0.3, 0.25]))
    caught = Pendulum(BIPED, TWO, gravity)
    after = caught.walk(8, SPEED, push)[-4:]
    lean = np.array(gravity[:2]) / OMEGA**2
    assert np.abs(after - lean).max() < 0.15
    np.testing.assert_allclose(after[-2:], after[-4:-2], atol=1e-6)
    fallen = Pendulum(BIPED, TWO, gravity, capture=None, feedback=0.0)
    assert np.abs(fallen.walk(8, SPEED, push)[-1]).max() > 1.0


@pytest.mark.parametrize("gravity", LEANS)
def test_a_pendulum_walks_at_the_commanded_speed(gravity):
    """Also where gravity leans: its part of the capture point keeps the steps where they are."""
    pendulum = Pendulum(BIPED, TWO, gravity)
    pendulum.walk(6, SPEED)
    start = pendulum.c.copy()
    pendulum.walk(2, SPEED)
    np.testing.assert_allclose((pendulum.c - start) / (2 * BIPED.period), SPEED, atol=1e-6)


def test_feet_do_not_cross():
    """Pushed towards the foot that stands, the other one stays on its side."""
    free, kept = (
        Pendulum(BIPED, TWO, capture=CaptureFoothold(least_width=share)) for share in (0.0, 0.6)
    )
    widths = []
    for pendulum in (free, kept):
        pendulum.v = np.array([0.0, 0.9])
        widths.append(pendulum.places[0, 1] - pendulum.targets(0.1, np.zeros(2))[1, 1])
    assert widths[0] == pytest.approx(0.0)
    assert widths[1] == pytest.approx(0.6 * 0.2)


def test_the_reach_limits_the_step():
    near = Pendulum(BIPED, TWO, reach=0.05)
    plain = near.targets(0.1, np.zeros(2))
    near.v = np.array([5.0, 0.0])
    moved = near.targets(0.1, np.zeros(2))[1] - plain[1]
    assert np.linalg.norm(moved) < 0.1 + 1e-9
    assert moved[0] > 0.04


def test_a_gait_with_flight_and_numbers_out_of_range_are_refused():
    with pytest.raises(ProblemError, match="no foot is on the ground"):
        supports(Gait(0.5, 0.4, (0.0, 0.5)), TWO, OMEGA)
    with pytest.raises(ProblemError, match="least_width = 1"):
        CaptureFoothold(least_width=1.0)
    with pytest.raises(ProblemError, match="commit = 2"):
        CaptureFoothold(commit=2.0)
