"""Inputs of a filter that reach its equations: sound ones, or what stands for them."""

from dataclasses import dataclass

import casadi as ca

from mbcasadi.estimation.estimator import LONGEST
from mbcasadi.estimation.manifold_correction import LARGEST_MEMORY, SHARED
from mbcasadi.estimation.manifold_process import Process
from mbcasadi.estimation.manifold_reading import Reading
from mbcasadi.estimation.memory import Memory
from mbcasadi.qp.input_guard import MASK_ON, quaternion_validity
from mbcasadi.system import System, evaluate
from mbcasadi.system.closing import LARGEST_GAP, worst_gap
from mbcasadi.system.coordinates import quaternion_places
from mbcasadi.system.parameter_inputs import is_physical

LARGEST_SAMPLE = 1e9
"""A sample or a control with a larger entry is bad input."""


@dataclass(frozen=True)
class Guard:
    """The guard of a tick.

    Attributes:
        system: the mechanism, its parameters as an input.
        process, reading: its motion and its sensors.
        memory: what is remembered.
        period: s, dt where that of the input is bad.
        z0: (nz,) memory where that of the input is broken.
    """

    system: System
    process: Process
    reading: Reading
    memory: Memory
    period: float
    z0: ca.DM

    def sound(self, given: dict[str, ca.MX]) -> dict[str, ca.MX]:
        """Return a sound state with inputs that are used, by name; q with the parameters behind."""
        s = {key: ca.SX.sym(key, x.shape) for key, x in given.items()}
        layout, z, dt = self.process.layout, s["z"], s["dt"]
        sound = self._is_sound(z)
        now = self.memory.split(ca.if_else(sound, z, self.z0))
        in_time = ca.logic_and(dt > 0, dt <= LONGEST)
        u, known = s[self.process.input[0]], ca.SX(1)
        driven = ca.sum1(ca.fabs(u)) <= LARGEST_SAMPLE
        p = ca.SX(ca.DM(self.system.parameters.values))
        if "p" in s:
            known = is_physical(self.system.parameters, s["p"])
            p = ca.if_else(known, s["p"], p)
        read, numbers = self._read(s["y"], s["valid"])
        outputs = {
            "q": self.process.placed(ca.vertcat(now["q"], p), now["x"]),
            "v": now["v"],
            "x": now["x"],
            "L": ca.reshape(now["L"], layout.n, layout.n),
            "drive": ca.if_else(driven, u, now["drive"]),
            "dt": ca.if_else(in_time, dt, self.period),
            "read": read,
            **{key: now[key] for key in ("doubt", "missing", "acquiring")},
            "good": ca.logic_and(ca.logic_and(in_time, driven), ca.logic_and(known, numbers)),
            "sound": sound,
        }
        dense = [ca.densify(x) for x in outputs.values()]
        guard = ca.Function("guard", [*s.values()], dense, [*s], [*outputs], SHARED)
        found = guard(**given)
        return found | {"y": given["y"]}

    def _is_sound(self, z: ca.SX) -> ca.SX:
        """Return whether a memory is finite, with rotations and on the manifold."""
        sound = ca.sum1(ca.fabs(z)) <= LARGEST_MEMORY
        sound = ca.logic_and(sound, quaternion_validity(z, quaternion_places(self.system)))
        model = self.process.system
        if not model.nc:
            return sound
        pose = ca.vertcat(z[: self.process.layout.moving], ca.DM(self.system.parameters.values))
        phi = evaluate(model.constraint, {"q": pose})
        return ca.logic_and(sound, worst_gap(phi, ca.DM(model.scales.rows)) <= LARGEST_GAP)

    def _read(self, y: ca.SX, valid: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return which sensors are read, and whether none of them reads what no sensor can."""
        numbers, read = ca.SX(1), list[ca.SX]()
        for sensor in self.reading.sensors:
            on = valid[sensor.valid] > MASK_ON
            size = ca.sum1(ca.fabs(y[list(sensor.rows)]))
            wild = ca.logic_and(on, size > LARGEST_SAMPLE)  # false for NaN, which is no sample
            numbers = ca.logic_and(numbers, ca.logic_not(wild))
            read.append(ca.logic_and(on, size <= LARGEST_SAMPLE))
        return ca.vertcat(*read), numbers
