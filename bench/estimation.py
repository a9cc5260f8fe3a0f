"""What estimators cost in generated C: operations, lines, and the time of one tick.

Bases of robots that walk, and filters of mechanisms, from encoders. Ticks follow a smooth motion
with the noise that is expected, caches warm, the state carried from tick to tick as on a robot; the
median of the ticks' least times is given. There is no peer: figures to keep are 8 µs for Go2,
10 µs for G1 and for an arm.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.robots import IIWA, robot_path
from bench.rows import row
from bench.tick_cases import QUADRUPED, robots
from mbcasadi.codegen import export_c
from mbcasadi.description import Contact
from mbcasadi.estimation import (
    Encoders,
    Estimator,
    Imu,
    Measured,
    base_estimator,
    encoder_noise,
    manifold_filter,
)
from mbcasadi.models import path as model_path
from mbcasadi.system import read_mjcf

Array = NDArray[np.float64]

FLAGS = {"native": ("-O3", "-march=native"), "avx2": ("-O3", "-mavx2", "-mfma")}
TICKS, REPEATS, QUICK_REPEATS = 500, 20, 2
PERIOD, SWING = 0.002, 0.05  # s, rad
NOISE = encoder_noise(14)


def run(quick: bool = False) -> dict[str, Any]:
    """Time every estimator; return `{"rows", "operations", "lines"}`."""
    results: dict[str, Any] = {"rows": [], "operations": {}, "lines": {}}
    with tempfile.TemporaryDirectory(prefix="mbcasadi-estimators-") as folder:
        for k, (model, estimator) in enumerate(estimators()):
            project = export_c(estimator, Path(folder) / str(k))
            record = samples(estimator)
            for name, flags in FLAGS.items():
                times = project.time(record, QUICK_REPEATS if quick else REPEATS, flags=flags)
                repeats = times.seconds.reshape(-1, TICKS)
                least = float(np.median(repeats.min(axis=0)))
                results["rows"].append(row(model, f"{estimator.name}, {name}", least, "-", None))
            results["operations"][model] = project.operations
            results["lines"][model] = project.lines
    return results


def estimators() -> Iterator[tuple[str, Estimator]]:
    """Yield the name of a robot and its estimator, of those whose files are present."""
    encoders = Encoders(noise=NOISE, rate_noise=0.01)
    for case in (QUADRUPED, *robots()):
        system = read_mjcf(case.spec())
        contacts = [Contact(name) for name in case.sites]
        imu = Imu(case.base, kind="body")
        made = base_estimator(system, contacts, imu=imu, encoders=encoders, period=PERIOD)
        yield f"{case.name}, nv {system.nv}", made
    for path in (model_path("scara"), model_path("four_bar"), robot_path(IIWA)):
        if path is not None:
            system = read_mjcf(path)
            joints = system.tree.joints if system.tree is not None else ()
            read = joints[: 1 if system.nc else len(joints)]
            measured = [Measured(joint.name, NOISE, kind="position") for joint in read]
            made = manifold_filter(system, measured, force_noise=0.1, period=PERIOD)
            yield f"{path.stem.split('__')[-1]}, nv {system.nv}, nc {system.nc}", made


def samples(estimator: Estimator) -> dict[str, Array]:
    """Return inputs (ticks, ·) of a smooth motion about rest, with noise."""
    rng, y = np.random.default_rng(0), np.tile(estimator.y0, (TICKS, 1))
    swing = SWING * np.sin(2 * np.pi * PERIOD * np.arange(TICKS))
    for sensor in estimator.sensors:
        rows = list(sensor.rows)
        y[:, rows] += sensor.noise * rng.standard_normal((TICKS, len(rows)))
        y[:, rows] += swing[:, None] * (sensor.kind == "position")
    sizes = {s.name: len(s.components) for s in estimator.inputs}
    rest = {"valid": 1.0, "mask": 1.0, "dt": PERIOD}
    names = [name for name in sizes if name not in ("y", "z", "p")]
    return {"y": y} | {name: np.full((TICKS, sizes[name]), rest.get(name, 0.0)) for name in names}
