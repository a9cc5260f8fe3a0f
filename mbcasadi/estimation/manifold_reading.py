"""What sensors of a mechanism are expected to read, and how the reading depends on the errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import casadi as ca

from mbcasadi.control.regulators.measurements import BEYOND_THE_STATE
from mbcasadi.description.sensors import SENSED_SOLVER
from mbcasadi.dynamics.predicted_sensors import predicted_readings
from mbcasadi.errors import ProblemError
from mbcasadi.estimation.estimator import EstimatorSensor
from mbcasadi.estimation.manifold_process import Process
from mbcasadi.estimation.measured import Measured
from mbcasadi.shapes import unique
from mbcasadi.system import System, evaluate
from mbcasadi.system.coordinates import rate_names, scalar_coordinates
from mbcasadi.system.names_by_kind import require_name_of

UNITS = {
    "accelerometer": "m/s²", "velocimeter": "m/s", "gyro": "rad/s", "force": "N", "torque": "N m",
    "rangefinder": "m", "tendonpos": "m", "tendonvel": "m/s", "ballangvel": "rad/s",
    "framepos": "m", "framelinvel": "m/s", "frameangvel": "rad/s", "framelinacc": "m/s²",
    "frameangacc": "rad/s²", "subtreecom": "m", "subtreelinvel": "m/s",
}  # fmt: skip
"""Unit of the readings of each kind of sensor of a model, where it has one."""


@dataclass(frozen=True)
class Reading:
    """The sensors of a filter. The system carries its parameters behind q.

    Attributes:
        process: of the mechanism.
        measured: the sensors, in the order of y.
    """

    process: Process
    measured: tuple[Measured, ...]

    @property
    def system(self) -> System:
        """The mechanism."""
        return self.process.system

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Kind of each sensor of the model."""
        return {sensor.name: sensor.kind for sensor in self.system.sensors}

    @cached_property
    def sensors(self) -> tuple[EstimatorSensor, ...]:
        """What y consists of."""
        names = unique([each.label for each in self.measured])
        found, place = list[EstimatorSensor](), 0
        for k, (name, each) in enumerate(zip(names, self.measured, strict=True)):
            size = 1 if each.kind != "sensor" else self.system.sensor(each.name).numel_out("y")
            rows = tuple(range(place, place + size))
            found.append(
                EstimatorSensor(name, each.kind, each.name, rows, each.noise, each.density, k)
            )
            place += size
        return tuple(found)

    @property
    def size(self) -> int:
        """Size of y."""
        return sum(len(sensor.rows) for sensor in self.sensors)

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of each entry of y; "" where none is known."""
        places, units = scalar_coordinates(self.system), list[str]()
        for sensor in self.sensors:
            if sensor.kind == "sensor":
                unit = UNITS.get(self.kinds[sensor.target], "")
            else:
                unit = places[sensor.target][2]
                unit = f"{unit}/s" if unit and sensor.kind == "rate" else unit
            units += [unit] * len(sensor.rows)
        return tuple(units)

    @property
    def turning(self) -> tuple[int, ...]:
        """Rows of y that are angles known up to 2 π."""
        pairs = zip(self.sensors, self.measured, strict=True)
        return tuple(row for sensor, each in pairs if each.turns for row in sensor.rows)

    @cached_property
    def function(self) -> ca.Function:
        """(q, v, x, u) → (h, H): readings (ny,), and their Jacobian (ny, n) by the errors."""
        moved = [m.name for m in self.measured if self._is_beyond(m)]
        kind = ca.MX if moved else cast(type[ca.MX], ca.SX)
        layout, system = self.process.layout, self.system
        sizes = {"q": system.nq, "v": system.nv, "x": layout.extra, "u": self.process.input[1]}
        s = {key: kind.sym(key, n) for key, n in sizes.items()}
        parts = [self._of_state(s)] + ([self._of_motion(moved, s)] if moved else [])
        order = self._order()
        h, by_q, by_v, by_x = (ca.vertcat(*blocks)[order, :] for blocks in zip(*parts, strict=True))
        N = system.velocity_map(s["q"])
        unknown = by_q[:, [layout.moving + k for k in layout.unknown]]
        nd = len(layout.disturbed)
        H = ca.horzcat(by_q @ N, by_v, by_x[:, :nd], unknown)
        options = {} if moved else {"cse": True}
        return ca.Function("reading", [*s.values()], [h, H], [*s], ["h", "H"], options)

    def is_rotation(self, sensor: EstimatorSensor) -> bool:
        """Return whether a sensor reads a unit quaternion."""
        return sensor.kind == "sensor" and self.kinds[sensor.target].endswith("quat")

    def _is_beyond(self, measured: Measured) -> bool:
        """Return whether a sensor reads more than q and v."""
        return measured.kind == "sensor" and self.kinds[measured.name] in BEYOND_THE_STATE

    def _order(self) -> list[int]:
        """Return the place of each row of y where those of the state come first."""
        pairs = list(zip(self.sensors, self.measured, strict=True))
        first = [row for s, m in pairs if not self._is_beyond(m) for row in s.rows]
        rows = first + [row for s, m in pairs if self._is_beyond(m) for row in s.rows]
        return [rows.index(k) for k in range(self.size)]

    def _of_state(self, s: dict[str, ca.MX]) -> tuple[ca.MX, ...]:
        """Return readings of the state and their Jacobians by q, v, x."""
        system = self.system
        q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
        places, readings = scalar_coordinates(system), [ca.SX(0, 1)]
        for measured in self.measured:
            if measured.kind == "position":
                readings.append(q[places[measured.name][0]])
            elif measured.kind == "rate":
                readings.append(v[places[measured.name][1]])
            elif not self._is_beyond(measured):
                sensor = system.sensor(measured.name)
                zeros = {n: ca.SX(*sensor.size_in(n)) for n in sensor.name_in()}
                readings.append(evaluate(sensor, zeros | {"q": q, "v": v}))
        h = ca.densify(ca.vertcat(*readings))
        outputs = [h, ca.jacobian(h, q), ca.jacobian(h, v)]
        function = ca.Function("of_state", [q, v], outputs, {"cse": True})
        values = function(s["q"], s["v"])
        return (*values, type(s["q"])(h.shape[0], self.process.layout.extra))

    def _of_motion(self, names: Sequence[str], s: dict[str, ca.MX]) -> tuple[ca.MX, ...]:
        """Return readings that the acceleration has a part in, with their Jacobians."""
        system, layout = self.system, self.process.layout
        predicted = predicted_readings(system, names)
        zeros = {n: ca.MX(*predicted.size_in(n)) for n in predicted.name_in()}
        own = {key: s[key] for key in ("q", "v", "u") if key in zeros}
        force = ca.MX.sym("f", system.nv)
        values = {n: ca.densify(x) for n, x in (zeros | own | {"f": force}).items()}
        y = predicted(**values)["y"]
        outputs = [y, *(ca.jacobian(y, x) for x in (s["q"], s["v"], force))]
        inputs = [s["q"], s["v"], s["u"], force]
        function = ca.Function("of_motion", inputs, outputs)
        pushed = ca.DM(system.nv, layout.extra)
        for k, row in enumerate(layout.disturbed):
            pushed[row, k] = 1
        f = pushed @ s["x"] + (0 if system.nu else s["u"])
        h, by_q, by_v, by_f = function(s["q"], s["v"], s["u"], ca.densify(f))
        return h, by_q, by_v, by_f @ pushed


def require_measured(system: System, measured: Sequence[Measured]) -> None:
    """Raise unless a system has these sensors, and equations for them.

    Raises:
        ProblemError: nothing is measured; a sensor that reads MuJoCo's solver or the time.
        UnknownNameError: no such sensor or joint, or a joint of several coordinates.
        UnsupportedFeatureError: a sensor without a Function.
    """
    if not measured:
        raise ProblemError("nothing is measured; expected the name of a sensor or of a joint")
    kinds = {sensor.name: sensor.kind for sensor in system.sensors}
    names = set(scalar_coordinates(system)) & set(rate_names(system))
    for each in measured:
        if each.kind != "sensor":
            require_name_of(system, "coordinate", each.name, sorted(names))
            continue
        system.sensor(each.name)
        if kinds[each.name] in (*SENSED_SOLVER, "clock"):
            raise ProblemError(
                f"sensor '{each.name}' ({kinds[each.name]}) reads MuJoCo's solver or the time; "
                "expected one that follows from the motion"
            )
