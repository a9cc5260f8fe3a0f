"""Sensors of a model as named Functions of state, acceleration, controls and external wrenches.

All sensors of one system have the same inputs, in this order:

    (q, v, a, [u], [act], wrenches, [solver], [p], [t])

`u` where the system has controls, `act` where it has activations, `t` where one of its sensors is a
clock. `solver` (n,) has a number for each touch sensor and each sensor of a limit, in MuJoCo's
order: they read what MuJoCo's solver did, which no equation here knows. `wrenches` (6, nbody) has
for each body, the world first, the external force, N, above its moment about the origin of the
body, N m, in world axes: the dual of `frame(body, "body").jacobian`.
"""

from collections.abc import Sequence

import casadi as ca

from mbcasadi import model
from mbcasadi.description import Coverage, RigidTree, Sensor
from mbcasadi.description.sensors import SENSED_SOLVER
from mbcasadi.errors import ProblemError, UnsupportedFeatureError
from mbcasadi.shapes import require_name
from mbcasadi.system.mechanism import Mechanism
from mbcasadi.system.names_of_tree import names_of_tree

WRENCH = 6  # rows: force above moment
CLOCK = "clock"


def sensed_state(system: Mechanism) -> tuple[model.SensedState, dict[str, ca.SX]]:
    """Return symbols of what the sensors of a system read, and those that are inputs, by name."""
    q = ca.SX.sym("q", system.nq)
    numbers = system.numbers_at(q)
    tree, actuators = numbers.tree, numbers.actuators
    state = model.SensedState(
        tree=tree,
        actuators=actuators,
        q=q,
        v=ca.SX.sym("v", tree.nv),
        a=ca.SX.sym("a", tree.nv),
        u=ca.SX.sym("u", len(actuators)),
        act=ca.SX.sym("act", system.na),
        wrenches=ca.SX.sym("wrenches", WRENCH, len(tree.bodies)),
        t=ca.SX.sym("t"),
        solver=ca.SX.sym("solver", solver_size(system)),
    )
    inputs = {"q": state.q, "v": state.v, "a": state.a}
    inputs |= {"u": state.u} if actuators else {}
    inputs |= {"act": state.act} if system.na else {}
    inputs["wrenches"] = state.wrenches
    inputs |= {"solver": state.solver} if state.solver.numel() else {}
    inputs |= {"t": state.t} if any(sensor.kind == CLOCK for sensor in system.sensors) else {}
    return state, inputs


def solver_size(system: Mechanism) -> int:
    """Return the number of sensors that read what MuJoCo's solver did."""
    return sum(sensor.kind in SENSED_SOLVER for sensor in system.sensors)


def sensors_fun(system: Mechanism, name: str, chosen: Sequence[Sensor]) -> ca.Function:
    """Return the Function `name` with the readings `y` of the chosen sensors in one column."""
    state, inputs = sensed_state(system)
    readings = ca.vertcat(ca.SX(0, 1), *(model.sensor_reading(state, sensor) for sensor in chosen))
    return ca.Function(name, list(inputs.values()), [readings], list(inputs), ["y"], {"cse": True})


def usable_sensors(sensors: Sequence[Sensor], coverage: Coverage) -> tuple[Sensor, ...]:
    """Return the sensors that have an equation here, in MuJoCo's order."""
    return tuple(s for s in sensors if not s.refusal and not _refusal_of_member(s, coverage))


def find_sensor(
    system_name: str,
    sensors: Sequence[Sensor],
    coverage: Coverage,
    tree: RigidTree | None,
    name: str,
) -> Sensor:
    """Return a sensor by its name.

    Args:
        system_name: for messages.
        sensors, coverage, tree: of the system.
        name: of the sensor.

    Raises:
        UnknownNameError: no such sensor; the message lists the valid names.
        UnsupportedFeatureError: it is no smooth function, or a member that it rests on is refused.
    """
    usable = usable_sensors(sensors, coverage)
    by_name = {sensor.name: sensor for sensor in sensors}
    if name not in by_name:
        elsewhere = {} if tree is None else names_of_tree(tree)
        require_name("sensor", name, [sensor.name for sensor in usable], elsewhere=elsewhere)
    sensor = by_name[name]
    reason = sensor.refusal or _refusal_of_member(sensor, coverage)
    if reason:
        raise UnsupportedFeatureError(
            f"{system_name}: sensor '{name}' ({sensor.kind}) has no smooth Function: {reason}; "
            "read it from the plant (Plant.sensor)"
        )
    return sensor


def require_tree(tree: RigidTree | None, system_name: str) -> RigidTree:
    """Return the tree of a system that was read from a model.

    Raises:
        ProblemError: the system is given by equations, and has no bodies.
    """
    if tree is None:
        raise ProblemError(
            f"'{system_name}' is given by equations and has no bodies; expected a system of "
            "read_mjcf"
        )
    return tree


def body_index(tree: RigidTree, name: str) -> int:
    """Return the index of a body.

    Raises:
        UnknownNameError: the message lists the valid names.
    """
    bodies = [body.name for body in tree.bodies]
    require_name("body", name, bodies, elsewhere=names_of_tree(tree))
    return bodies.index(name)


def _refusal_of_member(sensor: Sensor, coverage: Coverage) -> str:
    """Return why the member that a sensor rests on is refused, or nothing."""
    member = model.MEMBERS_OF_KINDS.get(sensor.kind)
    item = None if member is None else coverage.refusal(member)
    return "" if item is None else f"{item.feature}: {item.advice}"
