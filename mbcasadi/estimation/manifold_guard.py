"""Inputs of a filter that reach its equations: sound ones, or what stands for them."""

import casadi as ca

from mbcasadi.estimation.estimator import LONGEST
from mbcasadi.estimation.manifold_correction import SHARED
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


def sound_inputs(
    system: System, process: Process, reading: Reading, memory: Memory, period: float, z0: ca.DM,
    given: dict[str, ca.MX],
) -> dict[str, ca.MX]:  # fmt: skip
    """Return a sound state with inputs that are used, by name; q with the parameters behind.

    Args:
        system: the mechanism, its parameters as an input.
        process, reading: its motion and its sensors.
        memory: what is remembered.
        period: s, dt where that of the input is bad.
        z0: (nz,) memory where that of the input is broken.
        given: inputs of the tick.
    """
    s = {key: ca.SX.sym(key, x.shape) for key, x in given.items()}
    layout, z, dt = process.layout, s["z"], s["dt"]
    conditions = [quaternion_validity(z, quaternion_places(system))]
    if process.system.nc:
        pose = ca.vertcat(z[: layout.moving], ca.DM(system.parameters.values))
        phi = evaluate(process.system.constraint, {"q": pose})
        gap = worst_gap(phi, ca.DM(process.system.scales.rows))
        conditions.append(gap <= LARGEST_GAP)
    now, sound = memory.recalled(z, z0, *conditions)
    in_time = ca.logic_and(dt > 0, dt <= LONGEST)
    u, known, p = s[process.input[0]], ca.SX(1), ca.SX(ca.DM(system.parameters.values))
    driven = ca.sum1(ca.fabs(u)) <= LARGEST_SAMPLE
    if "p" in s:
        known = is_physical(system.parameters, s["p"])
        p = ca.if_else(known, s["p"], p)
    read, numbers = _read(reading, s["y"], s["valid"])
    outputs = {
        "q": process.placed(ca.vertcat(now["q"], p), now["x"]),
        "v": now["v"],
        "x": now["x"],
        "L": ca.reshape(now["L"], layout.n, layout.n),
        "drive": ca.if_else(driven, u, now["drive"]),
        "dt": ca.if_else(in_time, dt, period),
        "read": read,
        **{key: now[key] for key in ("doubt", "missing", "acquiring")},
        "good": ca.logic_and(ca.logic_and(in_time, driven), ca.logic_and(known, numbers)),
        "sound": sound,
    }
    dense = [ca.densify(x) for x in outputs.values()]
    guard = ca.Function("guard", [*s.values()], dense, [*s], [*outputs], SHARED)
    return guard(**given) | {"y": given["y"]}


def _read(reading: Reading, y: ca.SX, valid: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return which sensors are read, and whether none of them reads what no sensor can."""
    numbers, read = ca.SX(1), list[ca.SX]()
    for sensor in reading.sensors:
        on = valid[sensor.valid] > MASK_ON
        size = ca.sum1(ca.fabs(y[list(sensor.rows)]))
        wild = ca.logic_and(on, size > LARGEST_SAMPLE)  # false for NaN, which is no sample
        numbers = ca.logic_and(numbers, ca.logic_not(wild))
        read.append(ca.logic_and(on, size <= LARGEST_SAMPLE))
    return ca.vertcat(*read), numbers
