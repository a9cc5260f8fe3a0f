"""The tick with quadratic friction cones beside the same tick with pyramids of four sides.

The base is driven so that friction is at its limit: about half of Go2's contacts and most of G1's
touch their cones. The programs take turns; medians and 99th percentiles are the smallest of all.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.rows import row
from bench.tick_cases import FREQUENCY, PERIOD, TickCase
from bench.tick_robots import NATIVE, Tick, exported
from mbcasadi.errors import SolverError

Array = NDArray[np.float64]

DRIVE = (6.0, 10.0)  # m/s², rad/s²: of the base's acceleration
RATES = 2 * np.pi * FREQUENCY * np.array([2.0, 2.6, 1.4])
SOLVED = 0.99  # of the ticks


def rows_of_cones(case: TickCase, folder: Path, ticks: int, turns: int) -> list[dict[str, Any]]:
    """Return median and 99th percentile of the warm tick, with cones and with pyramids.

    Raises:
        SolverError: ticks without a solution, whose times do not compare.
    """
    ticks_of = {
        cone: exported(replace(case, cone=cone), folder / f"{case.name}_{cone}", ticks)
        for cone in ("quadratic", "inner")
    }
    times: dict[str, list[Array]] = {cone: [] for cone in ticks_of}
    for _ in range(turns):
        for cone, tick in ticks_of.items():
            timed = tick.project.time(_driven(tick), 1, flags=NATIVE)
            if np.mean(timed.status == 0) < SOLVED:
                raise SolverError(f"{case.name}, {cone}: {np.mean(timed.status == 0):.1%} solved")
            times[cone].append(timed.seconds)
    results = []
    for name, percent in (("median", 50), ("99th percentile", 99)):
        ours, four = (
            min(float(np.percentile(seconds, percent)) for seconds in times[cone])
            for cone in ("quadratic", "inner")
        )
        label = f"whole tick with quadratic cones, {name}, warm"
        results.append(row(case.name, label, ours, "pyramids of four sides", four))
    return results


def _driven(tick: Tick) -> dict[str, Array]:
    """Return the record with accelerations of the base that friction cannot give."""
    inputs, reference = tick.inputs, tick.controller.reference_slices
    count = len(inputs["q"])
    ref = np.tile(inputs["ref"], (count, 1))
    phase = np.outer(PERIOD * np.arange(count), RATES) + np.arange(3)
    for size, name in zip(DRIVE, ("acceleration", "angular_acceleration"), strict=True):
        ref[:, reference[f"{tick.case.base}.{name}"]] += size * np.sin(phase)
    return inputs | {"ref": ref}
