"""Counts of verdicts, and the table that a run of the campaign prints."""

from collections import Counter
from dataclasses import dataclass, field

from campaign.judge import NEEDLESS, UNDECIDED, WRONG, Verdict

SHOWN = 5  # findings of one kind and one case that are listed
FIGURES = ("dynamics", "constraint", "primal", "stationarity", "complementarity", "excess")


@dataclass
class Tally:
    """What was found about the answers of one case."""

    name: str
    problems: int = 0
    skipped: int = 0
    clipped: int = 0
    status: Counter = field(default_factory=Counter)
    findings: Counter = field(default_factory=Counter)
    worst: dict[str, float] = field(default_factory=dict)
    listed: list[tuple[int, str, str]] = field(default_factory=list)

    def add(self, number: int, verdict: Verdict | None, note: str = "") -> None:
        """Count a verdict; None where no closed pose was found."""
        if verdict is None:
            self.skipped += 1
            return
        self.problems += 1
        self.status[verdict.status] += 1
        self.clipped += "clipped" in verdict.figures
        if verdict.finding:
            self.findings[verdict.finding] += 1
            if verdict.finding not in UNDECIDED and self.findings[verdict.finding] <= SHOWN:
                self.listed.append((number, verdict.finding, note))
        else:
            for key in FIGURES:
                figure = verdict.figures.get(key, 0.0)
                self.worst[key] = max(self.worst.get(key, 0.0), figure)

    def merge(self, other: "Tally") -> None:
        """Add the counts of another part of the same case."""
        self.problems += other.problems
        self.skipped += other.skipped
        self.clipped += other.clipped
        self.status += other.status
        self.findings += other.findings
        self.listed += other.listed
        for key, value in other.worst.items():
            self.worst[key] = max(self.worst.get(key, 0.0), value)

    def count(self, kinds: tuple[str, ...]) -> int:
        """Return the number of findings of these kinds."""
        return sum(self.findings[kind] for kind in kinds)


def total(tallies: list[Tally]) -> Tally:
    """Return the sum over all cases."""
    everything = Tally("all")
    for tally in tallies:
        everything.merge(tally)
    return everything


def table(tallies: list[Tally]) -> str:
    """Return the counts as text."""
    head = f"{'case':24s}{'problems':>9s}" + "".join(f"{f's{k}':>7s}" for k in range(5))
    head += f"{'wrong':>7s}{'needless':>9s}{'undecided':>10s}"
    head += "".join(f"{key[:9]:>10s}" for key in FIGURES)
    lines = [head]
    for tally in [*tallies, total(tallies)]:
        line = f"{tally.name:24s}{tally.problems:9d}"
        line += "".join(f"{tally.status[k]:7d}" for k in range(5))
        line += f"{tally.count(WRONG):7d}{tally.count(NEEDLESS):9d}{tally.count(UNDECIDED):10d}"
        line += "".join(f"{tally.worst.get(key, 0.0):10.0e}" for key in FIGURES)
        lines.append(line)
    everything = total(tallies)
    lines += ["", *(f"{kind:20s}{n:7d}" for kind, n in everything.findings.most_common())]
    lines += [f"{'no closed pose':20s}{everything.skipped:7d}"]
    lines += [f"{'clipped references':20s}{everything.clipped:7d}", ""]
    for tally in tallies:
        shown: Counter = Counter()
        for number, kind, note in sorted(tally.listed):
            shown[kind] += 1
            if shown[kind] <= SHOWN:
                lines.append(f"{tally.name} --state {number}: {kind} {note}")
    return "\n".join(lines)
