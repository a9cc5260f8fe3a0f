"""Names and units of coordinates and rates, and their places in q, v and the constraint rows."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.description import Actuator, RigidTree, Signal, SpatialTendon
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column, unique
from mbcasadi.system.system import System

Array = NDArray[np.float64]

COORDINATES: dict[str, tuple[str, ...]] = {
    "free": ("x", "y", "z", "qw", "qx", "qy", "qz"),
    "ball": ("qw", "qx", "qy", "qz"),
    "slide": ("",),
    "hinge": ("",),
}


RATES: dict[str, tuple[str, ...]] = {
    "free": ("vx", "vy", "vz", "wx", "wy", "wz"),
    "ball": ("wx", "wy", "wz"),
    "slide": ("",),
    "hinge": ("",),
}


UNITS = {"free": ("m",) * 3 + ("",) * 4, "ball": ("",) * 4, "slide": ("m",), "hinge": ("rad",)}


RATE_UNITS = {
    "free": ("m",) * 3 + ("rad",) * 3,
    "ball": ("rad",) * 3,
    "slide": ("m",),
    "hinge": ("rad",),
}


FORCE_UNITS = {"m": "N", "rad": "N m"}


def qualified_name(name: str, suffix: str) -> str:
    """Return `name.suffix`, or the name alone."""
    return f"{name}.{suffix}" if suffix else name


def per(unit: str, time: str) -> str:
    """Return a unit per time."""
    return f"{unit}/{time}" if unit else f"1/{time}"


def coordinates(system: System) -> Signal:
    """Return names and units of q."""
    if system.tree is None:
        return unitless_signal("q", system.coordinate_names)
    joints = system.tree.joints
    names = tuple(qualified_name(j.name, c) for j in joints for c in COORDINATES[j.kind])
    return Signal("q", names, tuple(unit for j in joints for unit in UNITS[j.kind]))


def rates(system: System) -> Signal:
    """Return names and units of v: a rate has the name of its coordinate."""
    if system.tree is None:
        return unitless_signal("v", system.coordinate_names)
    joints = system.tree.joints
    names = tuple(qualified_name(j.name, c) for j in joints for c in RATES[j.kind])
    return Signal("v", names, tuple(per(unit, "s") for j in joints for unit in RATE_UNITS[j.kind]))


def generalised_forces(system: System) -> Signal:
    """Return names and units of forces on the coordinates: a force has the name of its rate."""
    if system.tree is None:
        return unitless_signal("f", system.coordinate_names)
    units = [unit for joint in system.tree.joints for unit in RATE_UNITS[joint.kind]]
    return Signal("f", rates(system).components, tuple(FORCE_UNITS[unit] for unit in units))


def controls(system: System) -> Signal:
    """Return names and units of u: of motors and servos with a gear of 1; "" for others."""
    tree = system.tree
    units = tuple("" if tree is None else _unit_of_control(tree, each) for each in system.actuators)
    return Signal("u", system.actuator_names, units or ("",) * system.nu)


def _unit_of_control(tree: RigidTree, actuator: Actuator) -> str:
    """Return the unit of a control that is a force itself, or the place of a servo."""
    is_single = actuator.act is None and float(actuator.gear[0]) == 1.0
    if actuator.transmission == "joint":
        kind = tree.joints[actuator.target].kind
        is_single = is_single and kind in ("slide", "hinge")
        slides = kind == "slide"
    else:
        slides = actuator.transmission == "tendon"
        is_single = (
            is_single and slides and isinstance(tree.tendons[actuator.target], SpatialTendon)
        )
    if not is_single or actuator.motor is not None or actuator.muscle_gain is not None:
        return ""
    constant, *others = actuator.gain
    if others != [0.0, 0.0]:
        return ""
    if constant == 1.0 and actuator.bias == (0.0, 0.0, 0.0):
        return "N" if slides else "N m"
    if actuator.bias[0] == 0.0 and actuator.bias[1] == -constant:
        return "m" if slides else "rad"
    return ""


def unitless_signal(name: str, components: tuple[str, ...]) -> Signal:
    """Return a signal without units."""
    return Signal(name, components, ("",) * len(components))


def equality_groups(system: System) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return name and number of rows of each equality constraint."""
    sizes = tuple(equality.size for equality in system.equalities)
    single = system.nc - sum(sizes)
    names = [equality.name for equality in system.equalities]
    return unique([*names, *system.constraint_names[system.nc - single :]]), sizes + (1,) * single


def quaternion_places(system: System) -> list[int]:
    """Return the first row in q of each quaternion."""
    if system.tree is None:
        return []
    shift = {"free": 3, "ball": 0}
    return [j.qpos + shift[j.kind] for j in system.tree.joints if j.kind in shift]


def moving_size(system: System) -> int:
    """Return the size of q without parameters that are behind it."""
    return system.nq if system.tree is None else system.tree.nq_of_joints


def pose_of(system: System, name: str, q: ArrayLike, *, finite: bool = True) -> Array:
    """Return a configuration (nq,), with the system's parameters behind it.

    Args:
        system: the mechanism, which may carry its parameters.
        name: of the argument, for messages.
        q: (nq,) pose; the parameters may be left out and then have the model's values.
        finite: raise for NaN and infinity.

    Raises:
        ShapeError: another size, or numbers that are not finite.
    """
    moving = moving_size(system)
    p = system.parameters.values if system.nq > moving else np.zeros(0)
    if np.size(q) == moving + p.size:
        return column(name, q, moving + p.size, finite=finite)
    return np.append(column(name, q, moving, finite=finite), p)


def pose_inputs(system: System, q: Array) -> dict[str, Array]:
    """Return the inputs q, and p where the system carries parameters, of a configuration."""
    moving = moving_size(system)
    return {"q": q[:moving]} | ({"p": q[moving:]} if system.nq > moving else {})


def state_sizes(system: System) -> tuple[Array, Array]:
    """Return the unit of each entry of q, without parameters, and of v (nv,): 1 or a length.

    v is counted in these units per second. Those of q are the ones of v, moved by `dq/dt = N v`.
    Parameters behind q have units of their own and are left out.
    """
    of_v = system.scales.coordinates
    moved = [np.abs(np.asarray(system.velocity_map(q))) @ of_v for q, _ in system.scales.states]
    of_q = np.max(moved, axis=0)[: moving_size(system)]
    return np.where(of_q > 0, of_q, 1.0), np.where(of_v > 0, of_v, 1.0)


def authored_pose(system: System) -> Array:
    """Return the model's `q0`.

    Raises:
        ProblemError: the system was given by equations and has none.
    """
    if system.tree is None:
        raise ProblemError(f"'{system.name}' is given by equations and has no initial pose; give q")
    return np.asarray(system.tree.q0, dtype=float)


def initial_pose(system: System) -> Array:
    """Return the model's `q0`, or zeros for a system that is given by equations."""
    return np.zeros(system.nq) if system.tree is None else authored_pose(system).ravel()


def start_pose(system: System) -> Array:
    """Return where a run may start: the first keyframe, else `q0`, zeros without a model."""
    keyframes = {} if system.tree is None else system.tree.keyframes
    return np.array(next(iter(keyframes.values()), initial_pose(system)), dtype=float)


def rate_names(system: System) -> tuple[str, ...]:
    """Return the name of each entry of δq and v: its joint, with a suffix where it has several."""
    return rates(system).components


def scalar_coordinates(system: System) -> dict[str, tuple[int, int, str]]:
    """Return place in q, place in v and unit of each coordinate that is one number, by name."""
    if system.tree is None:
        names = rates(system).components
        return {name: (i, i, "") for i, name in enumerate(names)} if system.nq == system.nv else {}
    units = {"hinge": "rad", "slide": "m"}
    return {j.name: (j.qpos, j.dof, units[j.kind]) for j in system.tree.joints if j.kind in units}
