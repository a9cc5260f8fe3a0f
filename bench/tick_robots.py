"""One robot's control tick as exported, beside TSID and beside the same tick as straight-line text.

The programs take turns, and the smallest of the medians is given for each: other work of the
machine lengthens some. TSID chooses contact forces by their least squares, ours by the least
squares of torques. So TSID runs twice: in its own form, with the same motion, and with our cost of
torques, where its torques must be ours to `SAME_TORQUES`; else nothing is compared.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench import tick_tsid
from bench.rows import row
from bench.tick_cases import TickCase
from mbcasadi.codegen import CProject, export_c
from mbcasadi.control import InverseDynamicsQP
from mbcasadi.control.inverse_dynamics.tick import make_stages
from mbcasadi.description import Controller
from mbcasadi.errors import SolverError

Array = NDArray[np.float64]

NATIVE = ("-O3", "-march=native")
TURNS = 3
EVICTED = 200  # ticks with swept caches
COMPARED = 40  # ticks whose torques are compared
SAME_TORQUES = 1e-3  # N m, of up to 40; eiquadprog adds 1e-8 to the Hessian
SAME_MOTION = 0.05  # of the largest joint acceleration; TSID's cost of forces biases the tasks
INTERNAL_FORCE_WEIGHT = 1e-10  # of the compared controller: TSID has no such cost
MEGABYTE, KILOBYTE = 1e6, 1e3

Sampler = Callable[[], Array]


@dataclass(frozen=True)
class Tick:
    """A robot's controller, exported.

    Attributes:
        case: the robot.
        controller: its law.
        project: the C.
        states: (ticks, nq) and (ticks, nv); the first pose is held.
        seconds: of the processor, for the controller and for its export.
    """

    case: TickCase
    controller: InverseDynamicsQP
    project: CProject
    states: tuple[Array, Array]
    seconds: tuple[float, float]

    @property
    def inputs(self) -> dict[str, Array]:
        """The record."""
        q, v = self.states
        ref = np.array(self.controller.reference_at(q[0]), dtype=float).ravel()
        return {"q": q, "v": v, "ref": ref, "mask": np.ones(len(self.case.sites))}

    def sampler(self, flags: Sequence[str] | None, *, evict: bool) -> Sampler:
        """Return a function that times the record once: (ticks,) s."""
        inputs = first_ticks(self.inputs, EVICTED) if evict else self.inputs
        return lambda: self.project.time(inputs, 1, evict=evict, flags=flags).seconds


def exported(case: TickCase, folder: Path, ticks: int) -> Tick:
    """Return the robot's controller, exported into a new folder."""
    begin = time.process_time()
    controller = case.controller()
    made = time.process_time()
    project = export_c(controller, folder)
    seconds = (made - begin, time.process_time() - made)
    return Tick(case, controller, project, case.sway(ticks), seconds)


def first_ticks(inputs: Mapping[str, Array], count: int) -> dict[str, ArrayLike]:
    """Return the record's first ticks."""
    return {k: a[:count] if np.ndim(a) == 2 else a for k, a in inputs.items()}


def sizes(tick: Tick, flags: Sequence[Sequence[str] | None]) -> dict[str, Any]:
    """Return operations, seconds in Python, seconds and memory of the compiler, library's size.

    Linux counts the process that starts the compiler: its memory is a lower bound of what is given.
    """
    result: dict[str, Any] = {
        "operations": tick.project.operations,
        "controller, CPU s": round(tick.seconds[0], 2),
        "export, CPU s": round(tick.seconds[1], 2),
    }
    for each in flags:
        size = tick.project.size(flags=each)
        result[words(tick.project, each)] = {
            "compiler, s": round(size.build.seconds, 1),
            "compiler, MB": round(size.build.peak_bytes / MEGABYTE),
            "library, kB": round(size.library_bytes / KILOBYTE),
        }
    return result


def words(project: CProject, flags: Sequence[str] | None) -> str:
    """Return the flags as text; the manifest's for none."""
    return " ".join(project.manifest["flags"] if flags is None else flags)


def rows_beside_tsid(
    tick: Tick, program: tick_tsid.Program, flags: Sequence[str] | None, turns: int
) -> list[dict[str, Any]]:
    """Return median and 99th percentile of the whole tick, warm and swept, ours and TSID's."""
    rows = []
    for evict, caches in ((False, "warm"), (True, "evicted")):
        samplers = {"ours": tick.sampler(flags, evict=evict)}
        samplers |= tsid_samplers(tick, program, evict=evict)
        times = by_turns(samplers, turns)
        ours = times.pop("ours")
        label = f"whole tick, {caches}, {{}}, {words(tick.project, flags)}"
        for k, quantity in enumerate(("median", "p99")):
            peers: dict[str, float | None]
            peers = {peer: theirs[k] for peer, theirs in times.items()} or {program.label: None}
            rows += [
                row(tick.case.name, label.format(quantity), ours[k], peer, seconds)
                for peer, seconds in peers.items()
            ]
    return rows


def tsid_samplers(tick: Tick, program: tick_tsid.Program, *, evict: bool) -> dict[str, Sampler]:
    """Return functions that time TSID on the record once, in both forms; none where absent."""
    path = program.path
    if path is None:
        return {}
    count = EVICTED if evict else len(tick.states[0])
    stance = tick_tsid.Stance(tick.case, tick.controller, *(x[:count] for x in tick.states))
    return {
        program.label: lambda: stance.run(path, evict=evict).seconds,
        f"{program.label}, our cost": lambda: stance.run(path, equal=True, evict=evict).seconds,
    }


def by_turns(samplers: Mapping[str, Sampler], turns: int) -> dict[str, tuple[float, float]]:
    """Return the smallest median and the smallest 99th percentile of each, s."""
    samples = [{name: sample() for name, sample in samplers.items()} for _ in range(turns)]
    return {
        name: (
            min(float(np.median(each[name])) for each in samples),
            min(float(np.percentile(each[name], 99)) for each in samples),
        )
        for name in samplers
    }


def compared_program(
    tick: Tick, program: tick_tsid.Program
) -> tuple[tick_tsid.Program, dict[str, float]]:
    """Return TSID's program, and how far its solutions are from ours.

    Where they are too far, where it leaves a tick unsolved or fails, there is no program, and its
    label says why.
    """
    if program.path is None:
        return program, {}
    every = max(1, len(tick.states[0]) // COMPARED)
    q, v = (values[::every] for values in tick.states)
    controller = tick.case.controller(internal_force_weight=INTERNAL_FORCE_WEIGHT)
    stance = tick_tsid.Stance(tick.case, controller, q, v)
    try:
        gaps = tick_tsid.differences(stance, program.path)
    except SolverError as error:
        return replace(program, path=None, reason=str(error)), {}
    limits = {"torque, N m": SAME_TORQUES, "motion": SAME_MOTION, "unsolved": 0}
    for name, limit in limits.items():
        if not gaps[name] <= limit:
            reason = f"not compared: {name} differs by {gaps[name]:.2g}, at most {limit:g}"
            return replace(program, path=None, reason=reason), gaps
    return program, gaps


def straight_line(controller: InverseDynamicsQP) -> Controller:
    """Return the same controller without loops over matrices."""
    return replace(controller.controller, stages=make_stages(controller, loops=False).qp)


def exported_text(tick: Tick, folder: Path) -> Tick:
    """Return the same tick as straight-line text, exported into a new folder."""
    begin = time.process_time()
    law = straight_line(tick.controller)
    made = time.process_time()
    project = export_c(law, folder)
    return replace(tick, project=project, seconds=(made - begin, time.process_time() - made))


def rows_beside_straight_line(tick: Tick, text: Tick, turns: int) -> list[dict[str, Any]]:
    """Return medians of the whole tick, loops beside straight-line text."""
    rows = []
    for evict, caches in ((False, "warm"), (True, "evicted")):
        samplers = {k: t.sampler(NATIVE, evict=evict) for k, t in (("ours", tick), ("text", text))}
        times = by_turns(samplers, turns)
        label = f"whole tick, {caches}, median, {' '.join(NATIVE)}"
        peer = "the same as straight-line text"
        rows.append(row(tick.case.name, label, times["ours"][0], peer, times["text"][0]))
    return rows
