"""Where a robot starts: joints inside their ranges, loops closed, feet on the ground."""

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from mbcasadi.anatomy import RobotDescription
from mbcasadi.anatomy.feet import LEVEL
from mbcasadi.anatomy.links import Links, standing
from mbcasadi.anatomy.possible_feet import STEEP, possible_feet
from mbcasadi.description import Joint
from mbcasadi.plant import Plant
from mbcasadi.plant.contact_share import contact_step
from mbcasadi.plant.contacts import find_point
from mbcasadi.system import GeometryContact, System, contacts_of
from mbcasadi.system.creep import grounds
from mbcasadi.system.natural_sizes import model_length
from mbcasadi.system.ranges import position_ranges

Array = NDArray[np.float64]

PRESSED, SUNK = 1e-4, 2e-3
"""Shares of the model's length: how deep all points of feet start, and the deepest at most."""

TURNS = 30
"""Of closing loops and moving joints into their ranges."""

SETTLES, FLAT = 3, 1e-6
"""Steps of settling on the ground; share of the largest singular value below which none counts."""

ON_THE_STOP = 1e-6
"""Rad or m; a joint as far beyond its range is in it."""

LOWER = 0.01
"""M; what is lower than the feet by more touches the ground before them."""


def base_joint(robot: RobotDescription, system: System, q: Array) -> tuple[Joint | None, Array]:
    """Return the joint by which a base leaves the ground, and the change of q (nq,) by 1 m up.

    It is the free joint, or the slide up of a base that moves in a plane; without both that of an
    object, if there is one.
    """
    tree, rises = system.tree, np.zeros(system.nq)
    assert tree is not None
    own = [joint for joint in tree.joints if tree.bodies[joint.body].name == robot.base_body]
    links, idle = Links(tree, q), robot.joints.passive
    slides = [joint for joint in own if joint.kind == "slide" and joint.name in idle]
    if robot.base == "planar":
        for joint in slides:
            up = float(links.axis(joint)[2])
            if abs(up) > STEEP:
                rises[joint.qpos] = 1 / up
                return joint, rises
    free = next((joint for joint in (*own, *tree.joints) if joint.kind == "free"), None)
    if free is not None:
        rises[free.qpos + 2] = 1.0
    return free, rises


def onto_ground(system: System, feet: Sequence[GeometryContact], q: Array) -> float:
    """Return how far up a base has to move, m, so that all points of its feet press on the ground.

    A foot that starts above the ground is accelerated without a load. On ground as soft as the
    model has it, feet start as deep as the weight presses them: until they are, they slide.
    """
    assert system.tree is not None
    length, gaps = model_length(system.tree), [float(contact.gap(q)[0]) for contact in feet]
    least, most = min(gaps), max(gaps)
    depth = PRESSED * length
    up = 0.0 if most <= -0.5 * depth else -min(most, least + SUNK * length) - depth
    if -SUNK * length > least:
        up = -min(most, least + SUNK * length) - depth
    return up - max(0.0, _sunk(system, feet, np.array(gaps) + up))


def settled(system: System, base: Joint, feet: Sequence[GeometryContact], q: Array) -> Array:
    """Return the pose (nq,) in which a base on its free joint has sunk and tipped onto its feet.

    Gaps are zero, or least squares of more than three: a wheel that starts above the ground drives
    nothing.
    """
    moves = base.dof + np.array([2, 3, 4])  # up, roll, pitch
    for _ in range(SETTLES):
        gaps = [-float(each.gap(q)[0]) for each in feet]
        rows = np.vstack([np.array(each.gap_jacobian(q))[:, moves] for each in feet])
        change = np.zeros(system.nv)
        change[moves] = np.linalg.lstsq(rows, gaps, rcond=FLAT)[0]
        q = np.array(system.integrate(q, change), dtype=float).ravel()
    return q


def _sunk(system: System, feet: Sequence[GeometryContact], gaps: Array) -> float:
    """Return how far down, m, feet with gaps (k,), m, sink under the weight, by `creep.Ground`."""
    tree = system.tree
    assert tree is not None
    soft = {(g.pair.first.name, g.pair.second.name): g for g in grounds(tree) if g.pair.condim > 1}
    own = [soft.get((each.geom1, each.geom2)) for each in feet]
    if not all(each is not None and each.mobility > 0 for each in own):
        return 0.0
    gaps = gaps - [sum(geom.margin for geom in each.geoms) for each in feet]  # MuJoCo pushes there
    weight = sum(body.mass for body in tree.bodies) * float(np.linalg.norm(tree.gravity))

    def excess(down: float) -> float:
        loads = [g.load(down - gap) for g, gap in zip(own, gaps, strict=True) if g and down > gap]
        return sum(loads) - weight

    deepest = model_length(tree)
    if excess(0.0) >= 0 or excess(deepest) <= 0:
        return 0.0
    return float(scipy.optimize.brentq(excess, 0.0, deepest))


def step_on_ground(
    plant: Plant, system: System, contacts: Sequence[GeometryContact], q: Array
) -> float | None:
    """Return the plant's step, s, that does not damp what stands behind its contacts.

    Args:
        plant, system: of the model.
        contacts: that carry it.
        q: (nq,) in which it stands.

    Returns:
        None for the model's own.
    """
    frames = []
    for each in contacts:
        p, R = (np.array(x) for x in system.frame(each.bodies[1], "body").pose(q)[:2])
        place = R.T @ (np.array(each.gap(q)[1]) - p)
        frames.append(find_point(plant.model, each.name, each.bodies[1], place.ravel().tolist()))
    step = contact_step(plant.model, q, frames)
    return step if step < plant.timestep else None


def joints_outside(system: System, q: Array) -> tuple[str, ...]:
    """Return the joints that are beyond their ranges."""
    assert system.tree is not None
    low, high = position_ranges(system)
    beyond = (q < low - ON_THE_STOP) | (q > high + ON_THE_STOP)
    return tuple(joint.name for joint in system.tree.joints if beyond[joint.qpos])


def joints_beyond_feet(system: System, robot: RobotDescription) -> tuple[str, ...]:
    """Return the joints of legs that move nothing that stands: no shapes are beyond them."""
    tree = system.tree
    assert tree is not None
    place = {body.name: k for k, body in enumerate(tree.bodies)}
    carried: set[int] = set()
    for foot in robot.feet:
        body = place[foot.body]
        while body:
            carried.add(body)
            body = tree.bodies[body].parent
    of_legs = {name for leg in robot.limbs_of("leg") if leg.foot for name in leg.joints}
    return tuple(j.name for j in tree.joints if j.name in of_legs and j.body not in carried)


def within_ranges(system: System, plant: Plant, q: Array) -> Array:
    """Return a pose near q whose joints are within their ranges, and whose loops are closed.

    Where both are not found in turns, the last pose.
    """
    inside = q.copy()
    for _ in range(TURNS if system.nc else 1):
        if not joints_outside(system, inside):
            break
        inside = np.clip(inside, *position_ranges(system))
        if system.nc:
            plant.reset(inside)
            inside = plant.q.copy()
    return inside


def feet_on_plane(system: System, q0: Array) -> tuple[tuple[GeometryContact, ...], tuple[str, ...]]:
    """Return the contacts of the possible feet with a plane of the world, and their names.

    Those of a foot that are higher than its lowest one do not count, as the other end of a capsule
    that stands on one; ends that differ by less than the radius do, as capsules lie along an arch.
    There are none where other geoms are lower than all feet: what the robot stands on is not among
    them.
    """
    assert system.tree is not None
    feet = [foot.geom for foot in possible_feet(standing(system.tree))]
    planes = [geom.name for geom in system.tree.geoms if geom.kind == "plane"]
    if not feet or not planes:
        return (), ()
    every = contacts_of(system, ground=planes[0], q=q0)
    gaps = {contact.name: float(contact.gap(q0)[0]) for contact in every}
    found = [contact for contact in every if contact.geom2 in feet]
    above = min((gaps[contact.name] for contact in found), default=0.0)
    if any(gaps[each.name] < above - LOWER for each in every if each not in found):
        return (), ()
    radii = {g.name: float(g.size[0]) for g in system.tree.geoms if g.kind == "capsule"}
    stand: list[GeometryContact] = []
    names: list[str] = []
    for geom in dict.fromkeys(contact.geom2 for contact in found):
        own = [contact for contact in found if contact.geom2 == geom]
        lowest = min(gaps[contact.name] for contact in own)
        level = lowest + max(LEVEL * model_length(system.tree), radii.get(geom, 0.0))
        low = [contact for contact in own if gaps[contact.name] <= level]
        stand += low
        whole = f"{geom} on {planes[0]}"
        names += [whole] if low == own else [contact.name for contact in low]
    return tuple(stand), tuple(names)
