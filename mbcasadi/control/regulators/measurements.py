"""What is measured: coordinates and rates by name, and sensors of the model."""

from collections.abc import Sequence

import casadi as ca

from mbcasadi.argument_kinds import checked
from mbcasadi.description.sensors import SENSED_ACCELERATIONS, SENSED_ACTUATION, SENSED_SOLVER
from mbcasadi.errors import ProblemError
from mbcasadi.system import System
from mbcasadi.system.coordinates import rate_names, scalar_coordinates
from mbcasadi.system.names_by_kind import require_name_of
from mbcasadi.system.parametric import at_model_values

BEYOND_THE_STATE = (*SENSED_ACCELERATIONS, *SENSED_ACTUATION, *SENSED_SOLVER, "clock")
"""Kinds of sensors that read more than q and v."""


@checked
@at_model_values
def encoders(system: System, positions: Sequence[str], speeds: Sequence[str] = ()) -> ca.Function:
    """Return (q, v) → (y): positions, then speeds, of coordinates given by name.

    Args:
        system: the mechanism.
        positions, speeds: joints that have one coordinate, or the `coordinate_names` of a system
            that is given by equations.

    Raises:
        UnknownNameError: an unknown name, or a ball or free joint, whose position has several
            coordinates.
        ProblemError: nothing is measured.
    """
    if not (positions or speeds):
        raise ProblemError("nothing is measured; expected the name of a joint")
    all_rates = list(rate_names(system))
    rows = coordinate_rows(system, positions)
    for name in speeds:
        require_name_of(system, "coordinate", name, all_rates)
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    y = ca.vertcat(*(q[row] for row in rows), *(v[all_rates.index(n)] for n in speeds))
    return ca.Function("encoders", [q, v], [y], ["q", "v"], ["y"])


@checked
def sensor_output(system: System, sensors: Sequence[str]) -> ca.Function:
    """Return (q, v) → (y): readings of sensors of the model, one below the other.

    For those that follow from the state: frames, joints, tendons, gyro, velocimeter, magnetometer,
    subtrees, energies. Readings that jump by a sign (quaternions) are none for a linear filter.

    Args:
        system: the mechanism, read from a model.
        sensors: their names.

    Raises:
        UnknownNameError: no such sensor; the message lists the valid names.
        UnsupportedFeatureError: a sensor that has no Function.
        ProblemError: nothing is measured, or a sensor reads accelerations, forces, controls or the
            time, which no (q, v) gives.
    """
    if not sensors:
        raise ProblemError("nothing is measured; expected the name of a sensor")
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    kinds = {sensor.name: sensor.kind for sensor in system.sensors}
    readings = []
    for name in sensors:
        reading = system.sensor(name)
        if kinds[name] in BEYOND_THE_STATE:
            raise ProblemError(
                f"sensor '{name}' ({kinds[name]}) reads more than q and v; expected one that "
                "follows from the state. `System.sensor` and `dynamics.predicted_readings` take "
                "accelerations, controls and forces"
            )
        readings.append(reading(**{"q": q, "v": v})["y"])
    return ca.Function("sensor_output", [q, v], [ca.vertcat(*readings)], ["q", "v"], ["y"])


def coordinate_rows(system: System, names: Sequence[str]) -> tuple[int, ...]:
    """Return the row of q of each of these coordinates.

    Raises:
        UnknownNameError: an unknown name, or a joint whose position has several coordinates.
    """
    places = scalar_coordinates(system)
    for name in names:
        require_name_of(system, "coordinate", name, list(places))
    return tuple(places[name][0] for name in names)
