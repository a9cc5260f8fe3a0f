"""A run of one controller: its C is given tick after tick, and each answer is judged."""

import tempfile
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from campaign.plans.inputs import drawn
from campaign.plans.judge import Judge
from campaign.plans.problems import PROBLEMS, Posed
from mbcasadi.codegen import export_c

SEED = 5
FRESH = 25  # ticks after which a run begins anew
GOES_ON = ("usual", "pushed")  # from other inputs a run does not go on
FASTEST = 30.0  # m/s and rad/s; beyond a run begins anew


@dataclass
class Tally:
    """Verdicts of a controller by kind of input, and what was wrong or needless."""

    name: str
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    notes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def run(name: str, ticks: int, seed: int = SEED) -> Tally:
    """Return the tally of a controller."""
    posed = PROBLEMS[name]()
    with tempfile.TemporaryDirectory(prefix="mbcasadi-plans-") as folder:
        loaded = export_c(posed.law, Path(folder) / "c").load(flags=("-O2",))
        return judged(name, posed, loaded, ticks, seed)


def judged(name: str, posed: Posed, loaded: object, ticks: int, seed: int = SEED) -> Tally:
    """Return the tally of a controller that is loaded."""
    rng, judge = np.random.default_rng([seed, zlib.crc32(name.encode())]), Judge(posed.law)
    tally, ocp = Tally(name), posed.law.ocp
    nq, nv = ocp.system.nq, ocp.system.nv
    begin = {
        "q": posed.law.controller.z0[:nq],
        "v": np.zeros(nv),
        "z": np.array(posed.law.controller.z0),
    }
    state = begin
    for tick in range(ticks):
        if tick % FRESH == 0:
            state = begin
        given = drawn(posed, rng, state, tick % FRESH)
        answer = loaded(*(given[key] for key in ("q", "v", "ref", "z")))
        u, z_next, status = (np.array(part.full()).ravel() for part in answer[:3])
        verdict = judge.verdict(given, [u, z_next, status[0]])
        tally.verdicts[given.kind, verdict.word] += 1
        if verdict.word == "wrong":
            tally.wrong.append(f"{name}, tick {tick} ({given.kind}): {verdict.why}")
        elif verdict.word != "right":
            tally.notes[given.kind, verdict.word, verdict.why] += 1
        if given.kind in GOES_ON:
            state = moved(posed, given, u) | {"z": z_next}
            if not np.all(np.abs(state["v"]) < FASTEST):
                state = begin
    return tally


def moved(posed: Posed, given: dict[str, np.ndarray], u: np.ndarray) -> dict[str, np.ndarray]:
    """Return q and v one sample later."""
    ocp = posed.law.ocp
    nq, nv = ocp.system.nq, ocp.system.nv
    x = ocp.state(given["q"], given["v"], *([u] * ocp.has_rates))
    later = np.array(ocp.dynamics(x, u, given["ref"][: ocp.np_])).ravel()
    return {"q": later[:nq], "v": later[nq : nq + nv]}


def table(tallies: list[Tally]) -> str:
    """Return the tallies as a table, then notes and the first wrong answers."""
    words = ("right", "refused", "needless", "undecided", "wrong")
    lines = [f"{'controller':14}{'inputs':14}" + "".join(f"{word:>11}" for word in words)]
    for tally in tallies:
        for kind in sorted({kind for kind, _ in tally.verdicts}):
            counts = (tally.verdicts[kind, word] for word in words)
            lines.append(f"{tally.name:14}{kind:14}" + "".join(f"{count:11}" for count in counts))
    for tally in tallies:
        for (kind, word, why), count in sorted(tally.notes.items()):
            if word != "refused":
                lines.append(f"{tally.name}: {count} of {kind}: {word}: {why}")
        lines += tally.wrong[:10]
    return "\n".join(lines)
