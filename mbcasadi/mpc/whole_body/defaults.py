"""What MPC of a whole mechanism has unless it is given: swing, law, costs, rows and prices."""

from collections.abc import Sequence

import casadi as ca
import numpy as np

from mbcasadi.contacts.groups import contact_groups_of
from mbcasadi.control.inverse_dynamics.controller import InverseDynamicsQP
from mbcasadi.control.inverse_dynamics.parts.observer import DisturbanceObserver
from mbcasadi.control.inverse_dynamics.parts.rigid_springs import RigidSprings
from mbcasadi.control.limits.joint_limits import JointLimits
from mbcasadi.control.tasks.frame_task import FrameTask
from mbcasadi.control.tasks.posture_task import PostureTask
from mbcasadi.control.tasks.task import Task
from mbcasadi.description import Contact
from mbcasadi.mpc.integrators.semi_implicit import SemiImplicitStep
from mbcasadi.mpc.legged.footsteps import SwingParameters
from mbcasadi.mpc.legged.from_system import gravity_of, robot_weight, trunk_joint
from mbcasadi.mpc.legged.gait import ROUNDING, Gait
from mbcasadi.mpc.legged.ground_axes import common_normal
from mbcasadi.mpc.ocp.contact_cones import ContactCones
from mbcasadi.mpc.ocp.contact_landing import ContactLanding
from mbcasadi.mpc.ocp.contact_schedule import ContactSchedule
from mbcasadi.mpc.ocp.cost import Cost
from mbcasadi.mpc.ocp.disturbance import Disturbance
from mbcasadi.mpc.ocp.joint_ranges import JointRanges
from mbcasadi.mpc.ocp.make_problem import ProblemPart
from mbcasadi.mpc.ocp.problem import Array
from mbcasadi.mpc.whole_body.contact_mask import mask_of_contacts
from mbcasadi.mpc.whole_body.default_cost import default_cost
from mbcasadi.system import System

CONE_PENALTY = 400.0
"""Price per second of a force outside its cone by the weight of the robot."""

LANDING_PRICE, SOLE_PRICE = 2.0, 10.0
"""Price of a landing at a distance from the ground by the height of the base, or at a speed by
√(g · height of the base): of points, and of feet of several contacts."""

APART_PRICE = 10.0
"""Price of soles that are nearer to each other than they should be, by the height of the base."""

JOINT_PRICE = 100.0
"""Price per second of a joint that is beyond its range, 1/rad."""

FOLLOWED_FORCE = 14.0
"""Weight of the error of a contact force by the weight of the robot, beside accelerations."""

LEARNING = 0.3
"""Bandwidth of the disturbance observer, times √(height of the base / g)."""

JOINTS_KP, BASE_KP = 300.0, 100.0
"""1/s², of the tasks of joints and base."""

DAMPING, DAMPING_OF_LINES = 20.0, 60.0
"""Of contacts, 1/s: of points and soles, and of feet on a line."""

SPRING_DAMPING = 2 * (JOINTS_KP * BASE_KP) ** 0.25
"""1/s, of springs that the law holds: between the kd of the base, behind them, and that of the
joints in front of them."""


SWING_FORCE = 0.36
"""Force that throws up the feet which swing at once, at most, by the weight of the robot."""

APEX = 24.0
"""Acceleration at the top of a `swing_path` by its height, times its duration squared."""


def default_stepping(
    system: System, contacts: Sequence[Contact], q0: Array, gait: Gait, height: float
) -> SwingParameters:
    """Return the parameters of a swing for a robot of some size, whose legs have some mass.

    Feet rise by a fifth of the height of the base, or less where their acceleration `24 h / T²` at
    the top takes `SWING_FORCE` of the weight: a leg that weighs a sixth of the robot lifts it.
    Light feet end their swings below the ground, so that they reach it; heavy ones would hit it.

    Args:
        system: the robot.
        contacts: its feet.
        q0: (nq,) pose in which it stands.
        gait: of the contacts.
        height: of the base over its feet, m.
    """
    time = float(np.sqrt(height / np.linalg.norm(gravity_of(system))))
    swing, reach, drift, depth = (share * height for share in (0.2, 0.6, 0.4, 0.02))
    mass = APEX * swing_mass(system, contacts, q0, gait)
    lifted = SWING_FORCE * robot_weight(system) * gait.flight**2  # none where no foot swings
    if lifted < mass * swing:
        swing, depth = lifted / mass, 0.0
    return SwingParameters(
        height=swing, feedback=0.6 * time, reach=reach, max_drift=drift, ground_penetration=depth
    )


def swing_mass(system: System, contacts: Sequence[Contact], q0: Array, gait: Gait) -> float:
    """Return the most mass of feet that swing at once, kg, as joints feel it along the normal.

    It is `1 / (n J M⁻¹ Jᵀ n)` of each foot, with the base held.
    """
    dof, normal = trunk_joint(system).dof, common_normal(contacts)
    held = np.delete(np.arange(system.nv), np.arange(dof, dof + 6))
    M = np.array(system.mass_matrix(q0))[np.ix_(held, held)]
    groups = contact_groups_of(system, contacts)
    along = [normal @ group.frame.jacobian(q0).full()[:3, held] for group in groups]
    masses = np.array([1 / (J @ np.linalg.solve(M, J)) for J in along])
    phases = np.array([gait.offsets[group.members[0]] for group in groups])
    ahead = np.mod(phases - phases[:, None] + ROUNDING, 1)  # of each foot, when one lifts
    return float(((ahead < 1 - gait.duty) @ masses).max())


def default_law(
    system: System,
    contacts: Sequence[Contact],
    period: float,
    time: float,
    limits: JointLimits | None,
    tunable: Sequence[str],
    further: Sequence[Task] = (),
    springs: Sequence[str] = (),
) -> InverseDynamicsQP:
    """Return inverse dynamics that follows joints, base and forces, and does further tasks.

    Its posture is that of the joints with actuators. The others move as the base and these let
    them: a finger of grams that counted would keep the base from where its plan goes.

    Args:
        system: the robot.
        contacts: its feet.
        period: of a tick, s.
        time: √(height / g), s.
        limits: of its joints.
        tunable: what may change at run time.
        further: tasks beside those of joints and base.
        springs: joints whose springs it holds.
    """
    base = trunk_joint(system)
    assert system.tree is not None
    place = system.tree.joints.index(base)
    body = next(body.name for body in system.tree.bodies if place in body.joints)
    driven = tuple(name for name in system.joint_roles.driven if name != base.name)
    posture = PostureTask(driven, kp=JOINTS_KP)
    tasks = [posture, FrameTask(body, kind="body", kp=BASE_KP, weight=10.0), *further]
    return InverseDynamicsQP(
        system,
        tasks,
        contacts,
        force_weight=FOLLOWED_FORCE / robot_weight(system) ** 2,
        force_reference=True,
        joint_limits=limits,
        contact_damping=_contact_damping(system, contacts),
        observer=DisturbanceObserver(LEARNING / time),
        rigid_springs=RigidSprings(springs, damping=SPRING_DAMPING) if springs else None,
        tunable=tunable,
        period=period,
    )


def _contact_damping(system: System, contacts: Sequence[Contact]) -> float:
    """Return how fast feet come to rest, 1/s.

    A foot that stands on a line turns as it creeps, and the more it has turned the more the forces
    of a plan turn it: H1 fell within half a minute of squats with the damping of soles.
    """
    groups = contact_groups_of(system, contacts)
    return DAMPING_OF_LINES if any(len(group.members) == 2 for group in groups) else DAMPING


def with_default_cost(
    system: System, contacts: Sequence[Contact], q0: Array, parts: Sequence[ProblemPart]
) -> list[ProblemPart]:
    """Return the parts, with the default costs where there is none but of changes of controls."""
    has_cost = any(
        part.has_setpoint or part.residual is not None or part.terminal is not None
        if isinstance(part, Cost)
        else isinstance(part, Task)
        for part in parts
    )
    return [*parts] if has_cost else [*default_cost(system, contacts, q0), *parts]


def default_rows(
    system: System,
    contacts: Sequence[Contact],
    parts: Sequence[ProblemPart],
    height: float,
    period: float,
    *,
    impacts: bool,
) -> list[ProblemPart]:
    """Return the cones of the contacts, and how they land: with `impacts` at any speed.

    In a plan a sole that lands on an edge carries at all of its corners, so that landing flat has a
    higher price than landing points: T1 rolled its foot while it was in the air and stood on its
    edge.
    """
    price = CONE_PENALTY * period / robot_weight(system)
    scheduled = any(isinstance(part, (ContactSchedule, ContactLanding)) for part in parts)
    speed = float(np.sqrt(height * np.linalg.norm(gravity_of(system))))
    groups = contact_groups_of(system, contacts)
    of_landing = SOLE_PRICE if any(len(g.members) > 1 for g in groups) else LANDING_PRICE
    of_speed = None if impacts else of_landing / speed
    landing = ContactLanding(contacts, of_landing / height, of_speed)
    cones = ContactCones(contacts, linear_penalty=price)
    limited = any(isinstance(part, (JointLimits, JointRanges)) for part in parts)
    ranges = [] if limited else [JointRanges(JOINT_PRICE * period)]
    return [cones, Disturbance(), *ranges, *([] if scheduled else [landing])]


def default_decay(system: System, contacts: Sequence[Contact]) -> tuple[float, ...]:
    """Return the share of each row that a step takes back: contacts stay where they landed."""
    loops = mask_of_contacts(system, contacts, ca.DM.zeros(len(contacts)))
    return tuple((SemiImplicitStep.decay * loops.full().ravel()).tolist())
