"""The controllers whose ticks are judged: loops, hard and soft rows, contacts that switch."""

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np
from robots.ground import Ground
from robots.whole_body.trials import walker as walker_on
from support.mpc_mechanisms import cart_pole
from support.small_walker import LEGS, small_walker, standing_pose

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.mpc.whole_body.contact_mask import mask_of_contacts
from mbcasadi.qp.rows import Bounded

PERIOD = 0.02  # s
TROT = mpc.trot(0.4, duty=0.6, start=0.1)
FRICTION = 0.6


@dataclass(frozen=True)
class Posed:
    """A controller, and what may be drawn at random about it.

    Attributes:
        law: the real-time iteration.
        reference: () → p (N + 1, np) of its usual task.
        masks: (on) → (rows,) for its switched contacts, (contacts,); None where there are none.
        gait: of the contacts, with the time since the beginning of a run.
    """

    law: mpc.RealTimeIteration
    reference: Callable[[], np.ndarray]
    masks: Callable[[np.ndarray], np.ndarray] | None = None
    gait: mpc.Gait | None = None


def swing_up() -> Posed:
    """Cart-pole: a soft speed, changes of the control, a hard track, a box at the end."""
    system = cart_pole(limit=8.0)
    at = mpc.stage_symbols(system)
    parts = [
        mpc.Cost(Q=[3.0, 30.0, 0.1, 0.1], R=[1e-2], Q_end=[30.0, 300.0, 1.0, 1.0], S=[1e-2]),
        mpc.StageBounds(du=[[-5.0, 5.0]], q=[[-0.6, 0.6], [-9.0, 9.0]]),
        Bounded(at.v[0], -0.5, 0.5, linear_penalty=0.5, quadratic_penalty=10.0),
        Bounded(at.q[1], 2.0, 4.0, linear_penalty=5.0, quadratic_penalty=10.0, at_end=True),
    ]
    ocp = mpc.optimal_control_problem(system, 15, 0.05, parts, symbols=at)
    law = mpc.real_time_iteration(ocp, solver="stagewise", delay=1)
    return Posed(law, lambda: ocp.parameters(setpoint_q=[0.3, np.pi]))


def growing() -> Posed:
    """The same with intervals of given lengths that grow."""
    system = cart_pole(limit=8.0)
    parts = [
        mpc.Cost(Q=[3.0, 30.0, 0.1, 0.1], R=[1e-2], Q_end=[30.0, 300.0, 1.0, 1.0], S=[1e-2]),
        mpc.StageBounds(du=[[-5.0, 5.0]], q=[[-0.6, 0.6], [-9.0, 9.0]]),
    ]
    lengths = 0.05 * 1.1 ** np.arange(12)
    step = mpc.SemiImplicitStep()
    ocp = mpc.optimal_control_problem(system, 12, [*lengths], parts, step=step)
    law = mpc.real_time_iteration(ocp, solver="stagewise", delay=1)
    return Posed(law, lambda: ocp.parameters(setpoint_q=[0.3, np.pi]))


def four_bar() -> Posed:
    """A loop whose rows are redundant, with limits of torque and of speed."""
    system = mb.read_mjcf(models.path("four_bar"))
    speeds = [[-10.0, 10.0]] * system.nv
    parts = [
        mpc.StageBounds(u=[[-0.1, 0.1]], v=speeds),
        mpc.Cost(Q=[5.0] * 3 + [0.1] * 3, R=[1e-2], Q_end=[50.0] * 3 + [1.0] * 3),
    ]
    step = mpc.SemiImplicitStep()
    ocp = mpc.optimal_control_problem(system, 15, PERIOD, parts, step=step)
    law = mpc.real_time_iteration(ocp, solver="stagewise")
    return Posed(law, lambda: ocp.parameters(setpoint_q=[1.0, 0.5, -0.5]))


def walker() -> Posed:
    """A walker's own plan: soft cones and landings, torques, feet that switch."""
    system = mb.read_mjcf(small_walker())
    feet = [mb.Contact(name, friction=FRICTION, sides=4) for name in LEGS]
    pose = standing_pose(system)
    whole = mpc.whole_body_mpc(system, 10, PERIOD, feet, gait=TROT, q0=pose)
    return _on_feet(whole.plan, feet)


def hard_cones() -> Posed:
    """The same walker with hard cones and hard ranges of joints: many problems have no solution."""
    system = mb.read_mjcf(small_walker())
    pose = standing_pose(system)
    contacts = [mb.Contact(name, friction=FRICTION, sides=4) for name in LEGS]
    on_feet = mb.with_contacts(system, contacts, pose).with_mask()
    weights = np.concatenate([[50.0] * 6, [5.0] * 12, [5.0] * 6, [0.1] * 12])
    limits = mb.control.JointLimits()
    parts = [
        mpc.Cost(Q=weights, R=[1e-2] * system.nu, Q_end=weights),
        mpc.ContactCones(contacts),
        limits,
    ]
    ocp = mpc.optimal_control_problem(on_feet, 8, PERIOD, parts, step=mpc.SemiImplicitStep())
    x = np.tile(np.concatenate([pose, np.zeros(system.nv)]), (9, 1))
    guess = mpc.initial_guess(ocp, x, np.zeros((8, system.nu)))
    return _on_feet(mpc.real_time_iteration(ocp, guess, solver="stagewise"), contacts, pose)


def go2() -> Posed:
    """Go2 of MuJoCo Menagerie, whose file has to be where `robots.models` says."""
    robot = walker_on("go2", Ground())
    whole = mpc.whole_body_mpc(robot.system, 10, PERIOD, robot.feet, gait=TROT, q0=robot.q0)
    return _on_feet(whole.plan, robot.feet)


def _on_feet(
    law: mpc.RealTimeIteration, contacts: list[mb.Contact], pose: np.ndarray | None = None
) -> Posed:
    system = law.ocp.system
    on = ca.SX.sym("on", len(contacts))
    rows = ca.Function("rows", [on], [mask_of_contacts(system, contacts, on)])
    setpoint = law.controller.z0[: system.nq] if pose is None else pose
    return Posed(
        law,
        lambda: law.ocp.parameters({"setpoint.q": setpoint}),
        lambda chosen: rows(chosen).full().ravel(),
        TROT,
    )


OF_FILES = ("go2",)
"""Problems of robots that are not ours."""

PROBLEMS: dict[str, Callable[[], Posed]] = {
    "swing_up": swing_up,
    "growing": growing,
    "four_bar": four_bar,
    "walker": walker,
    "hard_cones": hard_cones,
    "go2": go2,
}
