"""Robots whose control tick is timed: each stands on its feet and sways.

Every tool solves the same problem. So each model has motors in place of its servos, with the ranges
of the joints' motors, and no damping and no dry friction in the joints, which TSID does not have.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from bench.robots import G1, GO2, robot_path
from mbcasadi import models
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.control.inverse_dynamics.options import INTERNAL_FORCE_WEIGHT
from mbcasadi.description import Contact
from mbcasadi.system import read_mjcf

Array = NDArray[np.float64]

FRICTION, SIDES = 0.6, 4  # of the contacts
BASE_WEIGHT, POSTURE_WEIGHT = 10.0, 0.1
KP, KD = 100.0, 20.0  # 1/s², 1/s: the tasks' own, critically damped
SWAY = np.array([0.04, 0.04, 0.02, 0.08, 0.08, 0.08])  # of a quadruped's base, m and rad
PHASE = np.radians([0, 90, 180, 45, 135, 0])
FREQUENCY, PERIOD = 0.5, 1e-3  # Hz, s
RANK = 1e-8  # relative: four points of a sole have twelve rows of rank six


@dataclass(frozen=True)
class Foot:
    """Points of one body that stand: one, or the corners of a sole about its middle.

    Attributes:
        body: its name.
        middle: of the points, in the body's axes, m.
        half: half length and half width of the sole, m; none for a single point.
    """

    body: str
    middle: tuple[float, float, float]
    half: tuple[float, float] | None = None

    @property
    def corners(self) -> Array:
        """(points, 3) from the middle, m."""
        if self.half is None:
            return np.zeros((1, 3))
        x, y = self.half
        return np.array([[a, b, 0.0] for a in (-x, x) for b in (-y, y)])

    @property
    def sites(self) -> tuple[str, ...]:
        """Names of the points."""
        return tuple(f"{self.body}_point{k}" for k in range(len(self.corners)))


@dataclass(frozen=True)
class TickCase:
    """A robot and how it stands.

    Attributes:
        name: what is printed.
        path: its file; None where it is absent.
        base: the body that the base task holds.
        feet: that stand, all the time.
        bent: joint → angle where the stance differs from the model's first keyframe, rad.
        least_force: of a foot of one point, N. TSID's is that of a whole sole, ours of each point,
            so that a sole has none.
        sway_part: part of `SWAY`.
        cone: of the contacts, see `Contact`.
    """

    name: str
    path: Path | None
    base: str
    feet: tuple[Foot, ...]
    bent: Mapping[str, float] = field(default_factory=dict)
    least_force: float = 5.0
    sway_part: float = 1.0
    cone: str = "inner"

    @property
    def sites(self) -> tuple[str, ...]:
        """Names of all points that stand."""
        return tuple(site for foot in self.feet for site in foot.sites)

    def spec(self) -> mujoco.MjSpec:
        """Return the model with motors, sites at the feet, and joints without losses."""
        spec = mujoco.MjSpec.from_file(str(self.path))
        for joint in spec.joints:
            joint.damping, joint.frictionloss = np.zeros(3), 0.0
        for actuator in spec.actuators:
            joint = spec.joint(actuator.target)
            if joint.actfrclimited != mujoco.mjtLimited.mjLIMITED_FALSE and np.any(
                joint.actfrcrange
            ):
                actuator.ctrlrange = joint.actfrcrange
                joint.actfrclimited = mujoco.mjtLimited.mjLIMITED_FALSE
            actuator.set_to_motor()
        for foot in self.feet:
            for name, corner in zip(foot.sites, foot.corners, strict=True):
                spec.body(foot.body).add_site(name=name, pos=np.add(foot.middle, corner))
        return spec

    def controller(self, internal_force_weight: float = INTERNAL_FORCE_WEIGHT) -> InverseDynamicsQP:
        """Return the whole-body controller: base and posture, pyramids, torque limits.

        Args:
            internal_force_weight: as that of `InverseDynamicsQP`.
        """
        return InverseDynamicsQP(
            read_mjcf(self.spec()),
            tasks=[
                FrameTask(self.base, kind="body", weight=BASE_WEIGHT),
                PostureTask(weight=POSTURE_WEIGHT),
            ],
            contacts=[
                Contact(
                    site,
                    friction=FRICTION,
                    sides=SIDES,
                    min_force=self.least_force,
                    cone=self.cone,
                )
                for site in self.sites
            ],
            name="stance_tick",
            period=PERIOD,
            internal_force_weight=internal_force_weight,
        )

    def sway(self, ticks: int) -> tuple[Array, Array]:
        """Return (ticks, nq) and (ticks, nv): the base sways, the feet stay, `J_foot v = 0`."""
        model = self.spec().compile()
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, 0)
        for joint, angle in self.bent.items():
            data.joint(joint).qpos[0] = angle
        rate = 2 * np.pi * FREQUENCY
        q, v = np.zeros((ticks, model.nq)), np.zeros((ticks, model.nv))
        for k in range(ticks):
            J = point_jacobian(model, data, self.sites)
            base = self.sway_part * SWAY * rate * np.cos(rate * k * PERIOD + PHASE)
            legs = np.linalg.lstsq(J[:, 6:], -J[:, :6] @ base, rcond=RANK)[0]
            q[k], v[k] = data.qpos, np.concatenate([base, legs])
            mujoco.mj_integratePos(model, data.qpos, v[k], PERIOD)
        return q, v


def point_jacobian(model: mujoco.MjModel, data: mujoco.MjData, sites: tuple[str, ...]) -> Array:
    """Return (3 sites, nv) at `data.qpos`."""
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    J = np.zeros((3 * len(sites), model.nv))
    for row, site in zip(range(0, len(J), 3), sites, strict=True):
        mujoco.mj_jacSite(model, data, J[row : row + 3], None, model.site(site).id)
    return J


LEGS = ("FL", "FR", "RL", "RR")
BENT_KNEES = {"hip_pitch": -0.4, "knee": 0.8, "ankle_pitch": -0.4}

QUADRUPED = TickCase(
    "quadruped",
    models.path("quadruped"),
    "trunk",
    tuple(Foot(f"{leg}_foot", (0.0, 0.0, 0.0)) for leg in LEGS),
)


def robots() -> list[TickCase]:
    """Return the robots of others that are present."""
    soles = tuple(
        Foot(f"{side}_ankle_roll_link", (0.035, 0.0, -0.03), (0.085, 0.03))
        for side in ("left", "right")
    )
    bent = {f"{side}_{j}_joint": a for side in ("left", "right") for j, a in BENT_KNEES.items()}
    cases = [
        TickCase(
            "Go2",
            robot_path(GO2),
            "base",
            tuple(Foot(f"{leg}_calf", (-0.002, 0.0, -0.213)) for leg in LEGS),
        ),
        TickCase("G1", robot_path(G1), "pelvis", soles, bent, least_force=0.0, sway_part=0.25),
    ]
    return [case for case in cases if case.path is not None]
