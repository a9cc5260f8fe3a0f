"""What the file of a controller says of a model: where it stands, its contacts, and its motion."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mbcasadi.anatomy import RobotDescription
from mbcasadi.anatomy.standing_pose import standing_pose
from mbcasadi.control.regulators import equilibrium
from mbcasadi.errors import AssemblyError, ProblemError
from mbcasadi.plant import Ground, Plant
from mbcasadi.system import GeometryContact, System
from mbcasadi.validation.spec.activities import (
    ARMED,
    ON_FEET,
    WALKS,
    Activity,
    Walk,
    walk_of,
)
from mbcasadi.validation.spec.driving import drive_of, rolling_of, wheels_on_plane
from mbcasadi.validation.spec.lifting import balance_of
from mbcasadi.validation.spec.motion_options import MotionOptions
from mbcasadi.validation.spec.plan_feet import contacts_of_plan
from mbcasadi.validation.spec.proposal import Proposal, gains_of
from mbcasadi.validation.spec.short_legs import heels_and_toes
from mbcasadi.validation.spec.springs import HeldSprings, springs_to_hold
from mbcasadi.validation.spec.start import (
    base_joint,
    feet_on_plane,
    joints_beyond_feet,
    joints_outside,
    onto_ground,
    settled,
    step_on_ground,
    within_ranges,
)
from mbcasadi.validation.spec.tool_motions import loads_of, tool_motions

Array = NDArray[np.float64]
ROUND = ("sphere", "ellipsoid", "capsule")  # shapes that roll


def facts_of(
    system: System,
    robot: RobotDescription,
    ground: Ground | None,
    plant: Plant,
    activity: Activity,
    period: float,
    motion: MotionOptions,
) -> Proposal:
    """Return what the file says of a model.

    Args:
        system, robot: the model on its floor, and what it is.
        ground: the floor that it lacked, or None.
        plant: of the model.
        activity: what it is to do.
        period: of the controller, s.
        motion: what was asked for.

    Raises:
        ProblemError: a robot that cannot do this, or not so fast, or in such a circle.
    """
    tree = system.tree
    assert tree is not None  # it was read from a model
    keyframe = next(iter(tree.keyframes), None)
    authored = np.array(tree.q0 if keyframe is None else tree.keyframes[keyframe], dtype=float)
    upright = authored
    if any(tree.gravity):
        upright = standing_pose(system, robot, authored, can_squat=activity in ("squat", "walk"))
    q0 = within_ranges(system, plant, upright)
    on_feet = activity in ("stand", *ON_FEET) and robot.kind not in ARMED
    if on_feet and not any(tree.gravity):
        raise ProblemError(
            f"task {activity!r} of '{robot.name}', whose model has no gravity: nothing presses its "
            'feet on the ground; expected <option gravity="0 0 -9.81"/>'
        )
    free, rises = base_joint(robot, system, q0)
    contacts: tuple[str, ...] = ()
    unheld = ""
    found: tuple[GeometryContact, ...] = ()
    carry: tuple[GeometryContact, ...] = ()
    if free is not None and robot.kind == "wheeled base":
        carry = wheels_on_plane(robot, system, q0)
        if activity != "drive":
            q0 = settled(system, free, carry, q0)
        q0 += rises * onto_ground(system, carry, q0)
    elif free is not None and any(tree.gravity):
        found, contacts = feet_on_plane(system, q0)
        if found:
            q0, unheld = _at_rest(system, robot, q0, found, rises)
    stands = bool(found) and robot.base == "floating"
    if on_feet and activity != "stand" and not stands:
        raise ProblemError(
            f"task {activity!r} of '{robot.name}', which has no feet on a ground that its base "
            "could leave; expected a free joint of the base, and shapes of feet"
        )
    scalar = (joint for joint in tree.joints if joint.kind in ("hinge", "slide"))
    limbs = [joint.qpos for joint in scalar if free is not None and joint.body != free.body]
    loads = loads_of(robot, plant) if activity == "carry" else {}
    laden = Plant(plant.model, perturb=loads)
    bent = free is not None and not np.allclose(q0[limbs], authored[limbs])
    tools, q0 = tool_motions(robot, laden, q0, activity, motion)
    if tools and stands:
        q0, unheld = _at_rest(system, robot, q0, found, rises)
    stood = heels_and_toes(robot, found, q0)
    if len(stood) < len(found):
        contacts = tuple(each.name for each in stood)
    springs = springs_to_hold(system, found, q0) if found else HeldSprings()
    walk = balance = None
    if stood and activity == "lift" and free is not None:
        balance = balance_of(robot, system, q0, stood, tree.bodies[free.body].name)
    if activity in WALKS:
        walk = _walk(system, robot, plant.timestep, q0, found, springs, motion)
    step = step_on_ground(plant, system, carry or stood, q0) if activity != "drive" else None
    return Proposal(
        system=system,
        robot=robot,
        ground=ground,
        keyframe=keyframe,
        q0=q0,
        base=None if free is None else tree.bodies[free.body].name,
        contacts=contacts,
        moved=float(rises @ (q0 - authored)) if found or carry else 0.0,
        outside=joints_outside(system, authored),
        bent=bent,
        activity=activity,
        unheld=unheld,
        loads=loads,
        tools=tools,
        hold=None,
        balance=balance,
        walk=walk,
        drive=drive_of(robot, system, q0, motion.speed) if activity == "drive" else None,
        rolling=rolling_of(robot, system, q0) if carry and activity != "drive" else None,
        driven=driven_joints(system),
        loose=_loose(robot) if activity == "hold" else (),
        springs=springs,
        gains=gains_of(system, q0, driven_joints(system), springs, period),
        period=period,
        rigid=system.nc > 0,
        timestep=step if walk is None else walk.timestep,
        footless=joints_beyond_feet(system, robot) if found else (),
    )


def _at_rest(
    system: System,
    robot: RobotDescription,
    q: Array,
    feet: Sequence[GeometryContact],
    rises: Array,
) -> tuple[Array, str]:
    """Return the pose nearest to q that actuators hold on the feet, and why there is none.

    Args:
        system: of the model.
        robot: in it; where it has objects beside it, nothing holds these, and q is kept.
        q: (nq,) pose.
        feet: contacts on the ground, which they touch in the pose that is returned.
        rises: (nq,) change of q by 1 m up.
    """
    q, unheld = q + rises * onto_ground(system, feet, q), ""
    if robot.objects:
        return q, unheld
    try:
        contacts = [contact.as_contact() for contact in feet]
        q = equilibrium(system, q, contacts=contacts, friction=True).q
    except (AssemblyError, ProblemError) as error:
        unheld = str(error)
    return q + rises * onto_ground(system, feet, q), unheld


def _walk(
    system: System,
    robot: RobotDescription,
    timestep: float,
    q: Array,
    feet: Sequence[GeometryContact],
    springs: HeldSprings,
    motion: MotionOptions,
) -> Walk:
    """Return gait and command of a robot that stands at q on these contacts."""
    assert system.tree is not None
    rolling = {geom.name for geom in system.tree.geoms if geom.kind in ROUND}
    rotation = np.array(system.frame(robot.base_body, "body").pose(q)[1])
    contacts = contacts_of_plan(system, feet, rolling, q)
    return walk_of(robot, contacts, rotation, timestep, springs.tick, motion)


def _loose(robot: RobotDescription) -> tuple[str, ...]:
    """Return the joints of a limb on the world that nothing drives, if it is no arm."""
    if robot.kind != "other" or robot.base != "fixed":
        return ()
    names = [name for limb in robot.limbs for name in limb.joints]
    return tuple(name for name in names if name in robot.joints.passive)


def driven_joints(system: System) -> tuple[str, ...]:
    """Return the hinges and slides that an actuator drives, through a tendon too."""
    assert system.tree is not None
    scalar = [joint.name for joint in system.tree.joints if joint.kind in ("hinge", "slide")]
    return tuple(name for name in system.joint_roles.driven if name in scalar)
