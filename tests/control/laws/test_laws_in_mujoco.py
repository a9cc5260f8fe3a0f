"""Laws follow references in MuJoCo as generated C: heavier bodies, pushes, late controls."""

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest
from a05_mechanisms import system_of
from a10_motions import flat, joint_coordinates

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import PostureTask, laws
from mbcasadi.control.regulators import lti_inverse_dynamics
from mbcasadi.validation import Criteria, validate

PLATFORM = ("x", "y", "phi")


@dataclass
class Run:
    """A law on a model of ours, from its system, along `start + size wave(t)`.

    Attributes:
        keys: slices of the reference and its two rates.
        start: from the system to the reference's start.
        rate: of the wave, rad/s; `1 - cos`, or `sin` for `swings`.
        share: of the motion, that is missed at most.
        push: on which rate, how much, from when to when.
    """

    model: str
    make: object
    keys: tuple[str, str, str]
    start: object
    size: tuple
    rate: float
    share: float
    duration: float
    swings: bool = False
    push: tuple = (0, 0.0, 0.0, 0.0)
    more: dict = field(default_factory=lambda: {"delay": 1})

    def reference(self, law, start, t):
        w, size, turn = self.rate, np.array(self.size), self.rate * t
        wave = 1 - np.cos(turn), w * np.sin(turn), w * w * np.cos(turn)
        if self.swings:
            wave = np.sin(turn), w * np.cos(turn), -w * w * np.sin(turn)
        values = start + wave[0] * size, wave[1] * size, wave[2] * size
        return law.reference(**dict(zip(self.keys, values, strict=True)))

    def force(self, nv, t):
        places, sizes, begin, end = self.push
        return (begin <= t < end) * np.atleast_1d(sizes) @ np.eye(nv)[np.atleast_1d(places)]


def passive(joints, system):
    return laws.passive_joint_control(system, joint_coordinates(system, joints), kp=900.0)


def quasi(system):
    return laws.quasi_velocity_tracking(
        system, joint_coordinates(system, ("left_proximal", "right_proximal")), kp=15.0, kd=40.0
    )


def lti(system):
    return lti_inverse_dynamics(
        mb.linearize(system, mb.equilibrium(system, system.tree.q0)), kp=400.0
    )


THETA = ("theta_q", "theta_v", "theta_a")
POSTURE = ("posture_q", "posture_v", "posture_a")
PUSHED = (6, 1.0, 0.5, 0.6)  # N on the platform
RUNS = {
    "a five-bar by joints that have no motor": Run(
        "five_bar", partial(passive, ("left_distal", "right_distal")), THETA,
        lambda _: np.zeros(2), (0.2, 0.1), 2 * np.pi, 0.05, 1.5, push=(0, 2.0, 0.7, 0.8), more={},
    ),
    "a five-bar by quasi-velocities": Run(
        "five_bar", quasi, THETA, lambda s: s.tree.q0[[0, 2]], (0.3, -0.21), 2.0, 0.08, 2.0,
        swings=True, push=([0, 3], np.array([0.3, -0.3]), 0.0, 9.0),
        more={"delay": 1, "criteria": Criteria(settle=0.5)},
    ),
    "a platform by QR": Run(
        "planar_3rrr",
        lambda s: laws.qr_inverse_dynamics(s, PostureTask(joints=PLATFORM, kp=400.0)),
        POSTURE, lambda s: s.tree.q0[6:], (0.03, 0.02, 0.15), 3.0, 0.02, 1.0, push=PUSHED,
    ),
    "a platform by the linear law": Run(
        "planar_3rrr", lti, ("xi", "eta", "eta_dot"), lambda _: np.zeros(3), (0.05, -0.03, 0.02),
        3.0, 0.05, 1.0, push=PUSHED,
    ),
    "a four-bar by computed torque": Run(
        "four_bar", lambda s: laws.computed_torque(s, PostureTask(joints=("crank",), kp=400.0)),
        POSTURE, lambda s: s.tree.q0[:1], (0.3,), 1.0, 0.01, 2.0, more={"perturb": {}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.every(5)
def test_a_law_follows_in_mujoco(name):
    run = RUNS[name]
    system = system_of(run.model)
    law, start = run.make(system), flat(run.start(system))[0]
    given = {"perturb": {"mass": 0.1}} | run.more
    found = validate(
        law,
        models.path(run.model),
        run.duration,
        reference=partial(run.reference, law, start),
        disturbance=partial(run.force, system.nv),
        **given,
    ).runs[0]
    assert found.metric("tracking.rms_share") < run.share
    assert found.metric("status.solved") == 1.0
    assert found.metric("torque.excess") == 0.0


PUSHED_LATE = Run(
    "planar_3rrr", partial(passive, PLATFORM), THETA, lambda _: np.zeros(3), (0.04, -0.03, 0.15),
    2 * np.pi, 0.03, 1.8, push=(6, 8.0, 1.1, 1.2),
)  # fmt: skip


@pytest.mark.long
def test_the_platform_of_a_parallel_robot_with_passive_joints_follows_its_path_and_forgets_a_push():
    run, system = PUSHED_LATE, system_of("planar_3rrr")
    law = run.make(system)
    found = validate(
        law,
        models.path(run.model),
        run.duration,
        reference=partial(run.reference, law, np.zeros(3)),
        disturbance=partial(run.force, system.nv),
        perturb={"mass": 0.1},
        delay=1,
    ).runs[0]
    assert found.metric("tracking.rms_share") < run.share
    assert found.metric("torque.saturated") == 0
    assert found.metric("status.solved") == 1
    t, error = found.recording.t, np.abs(found.recording.monitor["error"])
    ends = (0.9, 1.1), (1.1, 1.3), (1.6, 1.8)
    before, during, late = (error[(t > a) & (t < b)].max() for a, b in ends)
    assert during > 3 * before  # the push was felt
    assert late < 2 * before  # and forgotten
