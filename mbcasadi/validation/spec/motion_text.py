"""Motions of a file as lines of Python: sums of terms, expressions of t."""

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from mbcasadi.control import Task
from mbcasadi.errors import ProblemError
from mbcasadi.system import System
from mbcasadi.validation.spec.code_text import WIDTH, Call, literal
from mbcasadi.validation.spec.inverse_dynamics import Moved

STEP, SINE = {"by", "duration", "start"}, {"amplitude", "frequency", "phase", "ramp", "start"}


def command_lines(command: Sequence[object]) -> Iterator[str]:
    """Yield the lines of a command: speeds and turn as expressions of t."""
    names = []
    for name, terms in zip(("ahead", "left", "turn"), command, strict=True):
        lines = [*sum_lines(name, terms)]
        names.append(name if lines else "0")
        yield from lines
    yield f'command = ca.Function("command", [t], [ca.vertcat({", ".join(names)})])'


def reference_lines(
    tasks: Sequence[Moved], tables: Sequence[Mapping[str, Any]], system: System
) -> Iterator[str]:
    """Yield the lines of a law's reference, none where nothing is moved.

    Args:
        tasks: of the file, and what moves them.
        tables: that they were read from.
        system: of the law.
    """
    moved = [each for each in zip(tasks, tables, strict=True) if each[0].reference]
    if not moved:
        return
    yield "ref = ca.SX(law.reference_at(q0))"
    for rates, own in groupby(moved, lambda each: _rates(each[0].task, system)):
        moves = []
        for (task, _), table in own:
            vector = yield from _move(task, table["reference"], system)
            moves.append(f"{literal(task.name)}: {vector}")
        yield Call("moves = {", moves, "}").text()
        yield "for task, move in moves.items():"
        yield f"    for rate in {literal(rates)}:"
        yield '        ref[law.reference_slices[f"{task}.{rate}"]] += move'
        yield "        move = ca.jacobian(move, t)"
    yield 'reference = ca.Function("reference", [t], [ref])'


def _rates(task: Task, system: System) -> list[str]:
    """Return what the reference of a task has: position, velocity, acceleration."""
    return [slot.name.removeprefix(f"{task.name}.") for slot in task.slots(system)[:3]]


def _move(task: Task, motion: Mapping[str, object], system: System) -> Generator[str, None, str]:
    """Yield the lines of the components of a motion, and return the vector of them."""
    entries = task.slots(system)[0].components
    if not {*motion} <= {*entries}:
        raise ProblemError(
            f"no script can be written of a reference that turns '{task.name}': found "
            f"{', '.join(motion)}, expected some of {', '.join(entries)}; write the TOML"
        )
    names = dict.fromkeys(entries, "0")
    for entry, terms in motion.items():
        name = re.sub(r"\W", "_", f"{task.name}_{entry}")
        lines = [*sum_lines(name, terms)]
        yield from lines
        names[entry] = name if lines else "0"
    return f"ca.vertcat({', '.join(names.values())})"


def sum_lines(name: str, terms: object) -> Iterator[str]:
    """Yield lines that make the sum of some terms, none where they are zero."""
    texts = [each for each in map(_term, terms if isinstance(terms, list) else [terms]) if each]
    whole = f"{name} = {' + '.join(texts)}"
    if len(whole) <= WIDTH:
        yield from [whole] * bool(texts)
        return
    yield f"{name} = {texts[0]}"
    yield from (f"{name} += {each}" for each in texts[1:])


def _term(term: object) -> str:
    """Return a term of a motion, an expression of t; "" where it is zero."""
    if not isinstance(term, Mapping):
        return literal(term) if term else ""
    if "by" in term and term.keys() <= STEP:
        start = literal(term.get("start", 0))
        return f"{literal(term['by'])} * rise({start}, {literal(term['duration'])})" * bool(
            term["by"]
        )
    if "amplitude" in term and term.keys() <= SINE:
        start, phase, ramp = (term.get(key, 0.0) for key in ("start", "phase", "ramp"))
        time = f"(t - {literal(start)})" if start else "t"
        turn = f"{literal(2 * term['frequency'])} * np.pi * {time}".removeprefix("1 * ")
        turn += f" {'-' if phase < 0 else '+'} {literal(abs(phase) / 180)} * np.pi" if phase else ""
        rises = f" * rise({literal(start)}, {literal(ramp)})" if ramp else ""
        return f"{literal(term['amplitude'])}{rises} * ca.sin({turn})"
    raise ProblemError(
        f"no script can be written of the motion {term}: found {', '.join(term)}, expected some of "
        f"{', '.join(sorted(STEP | SINE))}; write the TOML"
    )
