"""Three strict levels beside the same tick with weights: `python -m bench.tick_levels`.

The mass, then the turn of the base, then the posture. The first pose is held: at the start of the
record no limit is active, at its end friction and torques are at theirs in all levels. Each program
runs the record several times, in turns; of each tick the smallest time counts.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.rows import row, table
from bench.tick_cases import FRICTION, PERIOD, SIDES, TickCase, robots
from mbcasadi.codegen import CProject, export_c
from mbcasadi.control import ComTask, FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description import Contact
from mbcasadi.system import read_mjcf

Array = NDArray[np.float64]

LEVELS = (("com",), ("turn",), ("posture",))
TICKS, TURNS, REPEATS = 1000, 5, 20
PARTS = {"no limit active": slice(0, 150), "limits active": slice(300, TICKS)}


def rows_of_levels(case: TickCase, folder: Path) -> list[dict[str, Any]]:
    """Return the medians of both parts of the record, with levels and with weights."""
    law, projects = _law(case, levels=True), dict[bool, CProject]()
    for levels in (True, False):
        projects[levels] = export_c(_law(case, levels=levels), folder / f"{case.name}_{levels}")
    q, v = case.sway(TICKS)
    ref = np.array(law.reference_at(q[0]), dtype=float).ravel()
    inputs = {"q": q, "v": v, "ref": ref, "mask": np.ones(len(case.sites))}
    times = {levels: np.full(TICKS, np.inf) for levels in projects}
    for _ in range(TURNS):
        for levels, project in projects.items():
            seconds = project.time(inputs, REPEATS).seconds.reshape(REPEATS, TICKS)
            times[levels] = np.minimum(times[levels], seconds.min(axis=0))
    return [
        row(
            case.name,
            f"whole tick with three levels, {name}, warm",
            float(np.median(times[True][part])),
            "one level of weights",
            float(np.median(times[False][part])),
        )
        for name, part in PARTS.items()
    ]


def _law(case: TickCase, *, levels: bool) -> InverseDynamicsQP:
    return InverseDynamicsQP(
        read_mjcf(case.spec()),
        tasks=[
            ComTask(name="com"),
            FrameTask(case.base, kind="body", position="", name="turn"),
            PostureTask(),
        ],
        contacts=[
            Contact(site, friction=FRICTION, sides=SIDES, min_force=case.least_force)
            for site in case.sites
        ],
        levels=LEVELS if levels else (),
        name="levels_tick",
        period=PERIOD,
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="mbcasadi-levels-") as name:
        found = [line for case in robots()[:1] for line in rows_of_levels(case, Path(name))]
    print(table({"rows": found}))
