"""Joints without encoders below a free base: springs as states, followers by the loops."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import casadi as ca
import numpy as np
import pytest
from estimation.drawn_walk import drawn_walk
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

import mbcasadi as mb
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.estimation import Encoders, Fix, Footing, Imu, PassiveJoint, base_estimator

FEET = ["FL", "FR", "RL", "RR"]
DT, NOISE = 0.005, 1.1e-4
# the drawn feet are points, slip at rest too, and with white noise, whose speed has no bound
POINTS = Footing(rolling=1e-9, rest=1.0, bounce=1e-12)
CALIBRATED = Imu("trunk", gyro_bias=1e-3, accelerometer_bias=0.01)
SPRINGS = (PassiveJoint("FL_shank", 5e-3, 8.0, 0.0), PassiveJoint("RR_shank", 3e-3, 15.0, 0.0))
GEAR, BENT = 0.6, 0.02  # calf = GEAR rotor + BENT rotor²


class Robot(NamedTuple):
    system: mb.System
    names: list
    q0: np.ndarray

    def at(self, name):
        return self.names.index(name)

    def estimator(self, **options):
        read = tuple(n for n in self.names if n not in ("FR_calf", "FL_shank", "RR_shank"))
        usual = {"imu": CALIBRATED, "encoders": Encoders(read, noise=NOISE, rate_noise=0.02)}
        usual |= {"passive": SPRINGS, "footing": POINTS, "q0": self.q0, "period": DT}
        return base_estimator(self.system, [mb.Contact(n) for n in FEET], **usual | options)


@pytest.fixture(scope="module")
def robot():
    """Our quadruped with springs along two shanks, and a calf that a rotor in the thigh drives."""
    plain = mb.read_mjcf(mb.models.path("quadruped"))
    text = Path(mb.models.path("quadruped")).read_text()
    for leg in ("FL", "RR"):
        knee = f'<joint name="{leg}_calf" class="calf"/>'
        text = text.replace(knee, f'{knee}<joint name="{leg}_shank" type="slide" axis="0 0 1"/>')
    rotor = """<body name="rotor"><joint name="rotor" axis="0 1 0"/>
    <inertial pos="0 0 0" mass="0.1" diaginertia="1e-4 1e-4 1e-4"/></body><body name="FR_calf" """
    text = text.replace('<body name="FR_calf" ', rotor)
    loop = f"""<equality><joint joint1="FR_calf" joint2="rotor" polycoef="0 {GEAR} {BENT} 0 0"/>
    </equality><keyframe>"""
    keys = slice(text.index("<keyframe>"), text.index("</keyframe>"))
    system = mb.read_mjcf(text.replace(text[keys], loop))
    names = [joint.name for joint in system.tree.joints[1:]]
    stand = np.array(plain.tree.keyframes["stand"], dtype=float)
    known = {joint.name: stand[joint.qpos] for joint in plain.tree.joints[1:]}
    known["rotor"] = rotor_of(known["FR_calf"])
    return Robot(system, names, np.r_[stand[:7], [known.get(name, 0.0) for name in names]])


def rotor_of(calf):
    return (np.sqrt(GEAR**2 + 4 * BENT * calf) - GEAR) / (2 * BENT)


def test_springs_and_base_are_as_wrong_as_their_covariance_says(robot, is_thorough):
    runs = 40 if is_thorough else 12
    own = robot.estimator(footing=replace(POINTS, false_alarm=1e-2))
    tick = own.function.map(runs)
    springs = {robot.at(s.joint): s for s in SPRINGS}
    read = [robot.at(s.name) for s in own.sensors if s.kind == "position"]
    walk = drawn_walk(
        robot.system, FEET, robot.q0, CALIBRATED, Encoders(noise=NOISE, rate_noise=0.02), POINTS,
        runs=runs, dt=DT, seed=4, springs=springs,
    )  # fmt: skip
    walk.legs.remove(robot.at("rotor"))
    z, kept = np.tile(own.z0[:, None], (1, runs)), [3, 4, 6, 7, 8, 12, 13, 14, 15]
    for k in range(1, 301):
        y, on = walk.step()
        seen = rotor_of(walk.joints[:, robot.at("FR_calf")]) + NOISE * walk.rng.normal(size=runs)
        y[:, 6 + robot.at("rotor")] = seen
        y = np.hstack([y[:, :6], y[:, 6:][:, read], np.zeros((runs, len(read)))])
        mask = np.tile(on[:, None].astype(float), (1, runs))
        out = tick(y.T, np.ones((1 + len(read), runs)), mask, np.full((1, runs), DT), z)
        q, v, z, P = (np.array(out[i]) for i in (0, 1, 2, 3))
        assert not np.array(out[4]).any()
        if k in (100, 200, 300):
            P, nees = P.reshape(16, runs, 16).swapaxes(0, 1), 0.0
            for run in range(runs):
                R = Rotation.from_quat(q[3:7, run], scalar_first=True).as_matrix()
                e = np.concatenate([
                    np.zeros(3), Rotation.from_matrix(walk.R[run].T @ R).as_rotvec(),
                    v[:3, run] - walk.v[run], np.zeros(3),
                    q[[7 + k for k in springs], run] - walk.joints[run, list(springs)],
                    v[[6 + k for k in springs], run] - walk.bending[run, :, 1],
                ])  # fmt: skip
                nees += e[kept] @ np.linalg.solve(P[run][np.ix_(kept, kept)], e[kept])
            low, high = chi2.ppf([0.005, 0.995], len(kept) * runs)
            assert low < nees < high, f"tick {k}: NEES {nees / len(kept) / runs:.3f} of 1"


def test_followers_close_the_loops_and_move_with_them(robot):
    own = robot.estimator()
    y, z, rng = own.y0.copy(), own.z0, np.random.default_rng(1)
    read = [s.rows[0] for s in own.sensors if s.kind == "position"]
    for k in range(60):
        y[read] = own.y0[read] + 0.3 * np.sin(k * DT * 6) * (np.arange(len(read)) % 3 == 2)
        y[6 + len(read) :] = rng.normal(size=len(read))
        out = own.function(y=y, valid=1, mask=1, dt=DT, z=z)
        z, q, v = out["z_next"], out["q"], out["v"]
        assert np.abs(np.array(robot.system.constraint(q))).max() < 1e-9
        assert np.abs(np.array(robot.system.constraint_jacobian(q) @ v)).max() < 1e-9
    calf, rotor = (float(q[7 + robot.at(name)]) for name in ("FR_calf", "rotor"))
    assert abs(calf - robot.q0[7 + robot.at("FR_calf")]) > 0.01
    assert calf == pytest.approx(GEAR * rotor + BENT * rotor**2, abs=1e-9)
    assert float(ca.norm_inf(v[6 + robot.at("FR_calf")])) > 0.1


def test_encoders_far_away_from_the_loops_are_followed_in_a_few_ticks(robot):
    own = robot.estimator()
    y, z = own.y0.copy(), own.z0
    rotor = next(s.rows[0] for s in own.sensors if s.name == "rotor")
    for k in range(40):
        y[rotor] = own.y0[rotor] + (np.nan if k == 5 else 1e6 if k == 6 else 1.2 * (k > 10))
        out = own.function(y=y, valid=1, mask=1, dt=DT, z=z)
        z = out["z_next"]
        assert np.isfinite(np.array(z)).all()
    assert np.abs(np.array(robot.system.constraint(out["q"]))).max() < 1e-9


def test_what_leaves_joints_unknown_is_an_error(robot):
    with pytest.raises(ProblemError, match=r"without an encoder: 'FL_shank'.* moves 'FL'"):
        robot.estimator(passive=SPRINGS[1:])
    with pytest.raises(ProblemError, match="FR_calf: loops determine them"):
        robot.estimator(passive=(*SPRINGS, PassiveJoint("FR_calf")))
    with pytest.raises(ProblemError, match="none with an encoder"):
        robot.estimator(passive=(*SPRINGS, PassiveJoint("RL_calf")))
    with pytest.raises(UnknownNameError, match="shin"):
        robot.estimator(passive=(PassiveJoint("shin"),))
    with pytest.raises(ProblemError, match="move 'FL'"):
        robot.estimator(fixes=[Fix("height", "FL", noise=0.01)])
    with pytest.raises(ProblemError, match="bandwidth"):
        PassiveJoint("FL_shank", bandwidth=0.0)
