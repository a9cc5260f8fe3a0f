"""A Panda and an iiwa press with 20 N and slide there and back, the force in the horizon.

A real-time iteration of the arm with one row, the height of its ball: the multiplier of the row is
the force of the table, and costs what it is off its reference at all samples. The row closes by the
clock while the ball is still 0.5 mm above: the plan presses, and the ball goes down. What the arm
lacks in mass is learned while it hovers. Friction is none of the plan's forces; what the reference
expects of it is data, as a disturbance along the way. The law has no measured force.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import mujoco
import numpy as np
from scipy.interpolate import CubicSpline

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.control import DisturbanceObserver
from mbcasadi.validation import Recording
from robots.arms import press
from robots.arms.row import Figure
from robots.references import smooth

PERIOD, HORIZON, DELAY, MASS = 0.002, 20, 1, 0.1  # s, samples, ticks, share
FORCE, BANDWIDTH = 20.0, 20.0  # N, 1/s
GAP, LOWERED, CLOSES, PRESSES, SLIDES, DURATION = 5e-4, 1.5, 2.0, 2.3, 3.0, 9.0  # m, then s
RATE = 2.0  # rad/s, there and back
TURNS = 0.01  # m/s, speed from which on friction is expected whole
NO_DECAY = 1e-12  # 1/s: the ball sinks into MuJoCo's table, which is no error of the row
ALONG, UP, TILT, SPEED, OFF = 100.0, 100.0, 10.0, 1.0, 0.3  # roots of weights per second
COST = {"Q": 0.1, "R": 1e-3, "Q_end": 1.0}
POSES = 15  # of the way, between which joints are interpolated


TABLES = [
    press.Table('solreffriction="-1 -10"', friction=(-1.0, -10.0), speed=0.1),
    press.Table("stock contact", speed=0.01),
]


@dataclass(frozen=True)
class Press:
    """One arm on one table.

    Attributes:
        tool: the arm.
        motors: whether motors drive it in place of its servos.
        table: the contact of the plant, and the largest speed.
    """

    tool: press.Tool
    motors: bool
    table: press.Table

    @cached_property
    def plant(self) -> mujoco.MjModel:
        """The arm over the table."""
        return press.model(self.motors, self.table, self.tool)

    @cached_property
    def free(self) -> mb.System:
        """The arm in the air."""
        return mb.read_mjcf(self.plant)

    @property
    def amplitude(self) -> float:
        """Half of the way, m."""
        return self.table.speed / RATE

    @cached_property
    def q0(self) -> np.ndarray:
        """The pose above the table."""
        return press.pose(self.plant, along=0.0, tool=self.tool)

    @cached_property
    def hold(self) -> np.ndarray:
        """The controls that hold it there."""
        return mb.equilibrium(self.free, self.q0).u

    @cached_property
    def way(self) -> CubicSpline:
        """Pose and derivative of the ball's place along the way, by its place."""
        places = np.linspace(0, 2 * self.amplitude, POSES)
        poses = [self.q0]
        for y in places:
            poses.append(press.pose(self.plant, 0.0, y, self.tool, near=poses[-1]))
        poses = poses[1:]
        along = [self.free.frame("tip").jacobian(q).full()[1] for q in poses]
        return CubicSpline(places, np.hstack([poses, along]))

    @cached_property
    def law(self) -> mpc.RealTimeIteration:
        """The iteration."""
        free, q0 = self.free, self.q0
        q, v = (ca.SX.sym(key, size) for key, size in (("q", free.nq), ("v", free.nv)))
        height = free.frame("tip").pose(q)[0][2] - press.TABLE - press.BALL
        rows = [1] * free.nc + [0]
        system = free.with_rows(q, v, phi=height).with_mask(rows)
        at = mpc.stage_symbols(system, place=3, force=1)
        place, R = free.frame("tip").pose(at.q)
        turned = ca.mtimes(R.T, ca.DM(free.frame("tip").pose(q0)[1]))
        tilt = ca.vertcat(*(turned[j, i] - turned[i, j] for i, j in ((1, 2), (2, 0), (0, 1)))) / 2
        away, on = place - at.parameters["place"], at.mask[free.nc]
        residual = ca.vertcat(
            ALONG * away[:2],
            UP * away[2] * (1 - on),
            TILT * tilt,
            SPEED * ca.jtimes(place, at.q, at.v),
            OFF * (at.lam[free.nc] - at.parameters["force"]),
        )
        cost = mpc.Cost(**COST, residual=residual)
        parts = [cost, mpc.ContactSchedule(closing=press.ABOVE), mpc.Disturbance()]
        step = mpc.SemiImplicitStep(decay=NO_DECAY)
        ocp = mpc.optimal_control_problem(
            system, HORIZON, PERIOD, parts, symbols=at, step=step, name="press"
        )
        x, u = np.r_[q0, np.zeros(free.nv)], self.hold
        guess = mpc.initial_guess(ocp, np.tile(x, (HORIZON + 1, 1)), np.tile(u, (HORIZON, 1)))
        observer = DisturbanceObserver(bandwidth=BANDWIDTH)
        return mpc.real_time_iteration(
            ocp, guess, delay=DELAY, pending=[u] * DELAY, solver="stagewise", observer=observer
        )

    def reference(self, t: float) -> np.ndarray:
        """Return p of all samples."""
        times = t + PERIOD * (DELAY + np.arange(HORIZON + 1))
        angle = RATE * np.maximum(times - SLIDES, 0)
        along, speed = self.amplitude * (1 - np.cos(angle)), self.table.speed * np.sin(angle)
        on = times >= CLOSES
        down = np.array([smooth(each, 0, LOWERED)[0] for each in times])
        above = np.where(on, 0, press.ABOVE + (GAP - press.ABOVE) * down)
        force = FORCE * np.clip((times - CLOSES) / (PRESSES - CLOSES), 0, 1)
        nq, nc = self.free.nq, self.free.nc
        known = self.way(along)
        friction = -press.MU * force * np.tanh(speed / TURNS)
        return self.law.reference(
            place=np.c_[np.full_like(along, press.BEFORE), along, press.TABLE + press.BALL + above],
            force=force[:, None],
            mask=np.c_[np.ones((len(times), nc)), on],
            disturbance=friction[:, None] * known[:, nq:],
            setpoint_q=known[:, :nq],
            setpoint_u=self.hold,
        )


def table_forces(plant: mujoco.MjModel, recording: Recording) -> np.ndarray:
    """Return (ticks, 3) the table's force on the ball, N, from what it does to the joints."""
    data, tip, forces = mujoco.MjData(plant), plant.site("tip").id, []
    J = np.zeros((3, plant.nv))
    for q, by_joint in zip(recording.q, recording.other_force, strict=True):
        data.qpos = q
        mujoco.mj_kinematics(plant, data)
        mujoco.mj_comPos(plant, data)
        mujoco.mj_jacSite(plant, data, J, None, tip)
        forces.append(np.linalg.lstsq(J[:, :7].T, by_joint[:7], rcond=None)[0])
    return np.array(forces)


def figures() -> Iterator[Figure]:
    """Yield the figures."""
    for name, tool in (("panda", press.PANDA_TOOL), ("iiwa14", press.IIWA_TOOL)):
        for motors in (False, True):
            drive = "motors" if motors else "servos"
            for table in TABLES:
                case = Press(tool, motors, table)
                yield from measured(case, f"{name}, {drive}, press with the force in the horizon")


def measured(case: Press, name: str) -> Iterator[Figure]:
    """Yield the figures of one run."""
    run = mb.validate(
        case.law,
        case.plant,
        DURATION,
        q0=case.q0,
        reference=case.reference,
        delay=DELAY,
        perturb={"mass": MASS},
    ).runs[0]
    recording, slides = run.recording, run.recording.t >= SLIDES
    words = (
        f"{FORCE:g} N, {case.table.speed:g} m/s, {case.table.words}, mass +{MASS:.0%}, 1 tick late"
    )
    force = table_forces(case.plant, recording)[slides, 2]
    off = force - FORCE
    yield Figure(name, words, "RMS error of the force", np.sqrt(np.mean(off**2)), 1.0, "N")
    yield Figure(name, words, "largest error of the force", np.abs(off).max(), None, "N")
    yield Figure(name, words, "contact lost", 100 * np.mean(force <= 0), 0.0, "%")
    places = [case.free.frame("tip").pose(q)[0].full().ravel()[:2] for q in recording.q[slides]]
    wanted = [case.amplitude * (1 - np.cos(RATE * (t - SLIDES))) for t in recording.t[slides]]
    away = np.array(places) - np.c_[np.full(len(wanted), press.BEFORE), wanted]
    largest = 1e3 * np.linalg.norm(away, axis=1).max()
    yield Figure(name, words, "largest error along the table", largest, None, "mm")
    yield Figure(name, words, "ticks without a solution", np.count_nonzero(recording.status), 0)
    yield Figure(name, words, "tick", 1e6 * run.times.median, None, "µs")
    held = press.held_speed(case.plant, case.tool, FORCE)
    yield Figure(name, words, "speed that the contact holds", held, None, "m/s")
