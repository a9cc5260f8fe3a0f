"""A quadruped trots: the optimal control problem that `whole_body` times, and its recorded ticks.

The cost holds base and posture near a pose that moves ahead, feet near a path of heights, and
torques near zero. A foot that a sample's mask has on does not move; within a step of its landing
its velocity is gone. Torques and friction pyramids are hard limits, or are left out for peers that
have none. The plant is the problem's own step, with noise in its velocities.
"""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from bench.tick_cases import TickCase
from bench.whole_body_residual import Plan
from mbcasadi.contacts.constraints import with_contacts
from mbcasadi.description import Contact
from mbcasadi.mpc import (
    ContactCones,
    ContactSchedule,
    Cost,
    OptimalControlProblem,
    SemiImplicitStep,
    initial_guess,
    optimal_control_problem,
    real_time_iteration,
    stage_symbols,
)
from mbcasadi.mpc.rti.iteration import RealTimeIteration
from mbcasadi.system import System, read_mjcf
from mbcasadi.system.mask import row_mask

Array = NDArray[np.float64]

INTERVALS, PERIOD = 20, 0.02  # s
FRICTION, SIDES = 0.5, 4
BASE, POSTURE, TORQUE, HEIGHT = (20.0, 20.0, 200.0, 200.0, 200.0, 200.0), 5.0, 1e-3, 3000.0
BASE_RATE, JOINT_RATE = (20.0, 20.0, 20.0, 5.0, 5.0, 5.0), 0.05
END = 0.5  # s, for which the weights of state count at the end
STRIDE, STAND = 24, 2  # samples of a stride, and of four feet down in each half of it
SPEED, LIFT = 0.4, 0.06  # m/s of the base, m of a swinging foot
DIAGONAL = (1.0, 0.0, 0.0, 1.0)  # of FL FR RL RR: which swing in the first half of a stride
STILL = 10  # ticks before it starts
NOISE = (0.05, 0.2)  # of the base's and the joints' velocities, m/s and rad/s, at each tick
SEED = 0
ANYWHERE = 10.0  # m from which a foot may land: peers have no row for it
NO_DECAY = 1e-12  # Crocoddyl's contacts have one gain for their three axes: none for the height


@dataclass(frozen=True)
class Trot:
    """A robot that trots.

    Attributes:
        case: the robot, with feet in the order FL, FR, RL, RR.
        intervals: N.
        limited: whether torques and forces are limited.
    """

    case: TickCase
    intervals: int = INTERVALS
    limited: bool = True

    @cached_property
    def contacts(self) -> list[Contact]:
        """The feet."""
        return [Contact(site, friction=FRICTION, sides=SIDES) for site in self.case.sites]

    @cached_property
    def base_system(self) -> System:
        """The robot in the air."""
        spec = self.case.spec()
        if not self.limited:
            for actuator in spec.actuators:
                actuator.ctrllimited = False
        return read_mjcf(spec)

    @cached_property
    def system(self) -> System:
        """The robot with rows of contacts."""
        return with_contacts(self.base_system, self.contacts).with_mask()

    @cached_property
    def stand(self) -> Array:
        """(nq,) the pose that it holds."""
        tree = self.base_system.tree
        assert tree is not None
        return np.array(next(iter(tree.keyframes.values())), dtype=float)

    @cached_property
    def weights(self) -> dict[str, Array]:
        """Weights of state and control, per second, and of the state at the end."""
        joints = self.system.nv - 6
        state = np.concatenate(
            [BASE, np.full(joints, POSTURE), BASE_RATE, np.full(joints, JOINT_RATE)]
        )
        return {"state": state, "control": np.full(self.system.nu, TORQUE), "end": END * state}

    @cached_property
    def ocp(self) -> OptimalControlProblem:
        """The problem."""
        symbols = stage_symbols(self.system, heights=len(self.contacts))
        places = [self.system.frame(site).pose(symbols.q)[0][2] for site in self.case.sites]
        weights = self.weights
        lifted = np.sqrt(HEIGHT) * (ca.vertcat(*places) - symbols.parameters["heights"])
        cost = Cost(Q=weights["state"], R=weights["control"], Q_end=weights["end"], residual=lifted)
        cones = [ContactCones(self.contacts)] if self.limited else []
        return optimal_control_problem(
            self.system,
            self.intervals,
            PERIOD,
            [cost, ContactSchedule(closing=ANYWHERE), *cones],
            symbols=symbols,
            step=SemiImplicitStep(decay=NO_DECAY),
            name="trot",
        )

    def law(self, *, shift: bool = True) -> RealTimeIteration:
        """Return the controller, which begins with standing."""
        x = np.tile(self.still, (self.intervals + 1, 1))
        guess = initial_guess(self.ocp, x, np.zeros((self.intervals, self.system.nu)))
        return real_time_iteration(self.ocp, guess, solver="stagewise", shift=shift)

    @cached_property
    def still(self) -> Array:
        """(nx,) the state at rest."""
        return np.concatenate([self.stand, np.zeros(self.system.nv)])

    @cached_property
    def ground(self) -> Array:
        """(feet,) heights of the feet when it stands, m."""
        poses = [self.system.frame(site).pose(self.stand)[0] for site in self.case.sites]
        return np.array([float(pose[2]) for pose in poses])

    def samples(self, tick: int) -> tuple[Array, Array, Array]:
        """Return x (N + 1, nx) to follow, heights (N + 1, feet), and which feet are on the ground.

        Args:
            tick: of which they are; it starts to trot at tick `STILL`.
        """
        steps = tick - STILL + np.arange(self.intervals + 1)
        trots, phase = steps >= 0, np.mod(steps, STRIDE)
        half = STRIDE // 2
        progress = (np.mod(phase, half) - STAND + 0.5) / (half - STAND)
        lift = LIFT * np.sin(np.pi * np.clip(progress, 0, 1)) * trots
        first = phase < half
        diagonal = np.array(DIAGONAL[: len(self.contacts)])
        swings = np.outer(first, diagonal) + np.outer(~first, 1.0 - diagonal)
        swings = swings * (trots & (progress > 0))[:, None]
        x = np.tile(self.still, (self.intervals + 1, 1))
        x[:, 0] += SPEED * PERIOD * np.maximum(steps, 0)
        x[:, self.system.nq] = SPEED * trots
        return x, self.ground + swings * lift[:, None], 1.0 - swings

    def parameters(self, tick: int) -> Array:
        """Return p (N + 1, np)."""
        x, heights, on = self.samples(tick)
        nq = self.system.nq
        mask = row_mask(self.system, dict(zip(self.case.sites, on.T, strict=True)))
        return self.ocp.parameters(
            setpoint_q=x[:, :nq], setpoint_v=x[:, nq:], heights=heights, mask=mask
        )

    def plan(
        self, record: "Record", tick: int, x: Array, u: Array, rows: Array | None = None
    ) -> Plan:
        """Return a plan of a tick, with its multipliers where there are limits."""
        start = np.concatenate([record.inputs[key][tick] for key in ("q", "v")])
        return Plan(start, self.parameters(int(record.tick[tick])), x, u, rows)


@dataclass(frozen=True)
class Record:
    """Ticks of a closed loop.

    Attributes:
        tick: (ticks,) number of each.
        inputs: q, v, ref, z of each: (ticks, ·).
        status: (ticks,) of each.
    """

    tick: Array
    inputs: dict[str, Array]
    status: Array

    def __getitem__(self, which: slice) -> "Record":
        """Return some of the ticks."""
        inputs = {key: values[which] for key, values in self.inputs.items()}
        return Record(self.tick[which], inputs, self.status[which])


def closed_loop(trot: Trot, law: RealTimeIteration, loaded: ca.Function, ticks: int) -> Record:
    """Return the ticks of a run; those before it trots are left out.

    Args:
        trot: the robot.
        law: its controller, shifting.
        loaded: the controller's C.
        ticks: how many.
    """
    rng, ocp = np.random.default_rng(SEED), trot.ocp
    nq, joints = trot.system.nq, trot.system.nv - 6
    noise = np.concatenate([np.full(6, NOISE[0]), np.full(joints, NOISE[1])])
    x, z, rows, status = trot.still, law.controller.z0, list[tuple[Array, ...]](), list[float]()
    for tick in range(ticks + STILL):
        p = trot.parameters(tick)
        rows.append((x[:nq], x[nq:], p.ravel(), z))
        u, z, flag, *_ = (np.array(value).ravel() for value in loaded(*rows[-1]))
        status.append(float(flag[0]))
        x = np.array(ocp.dynamics(x, u, p[0])).ravel()
        x[nq:] += noise * rng.standard_normal(noise.size)
    inputs = {
        key: np.array(values)
        for key, values in zip(("q", "v", "ref", "z"), zip(*rows, strict=True), strict=True)
    }
    return Record(np.arange(float(ticks + STILL)), inputs, np.array(status))[STILL:]
