"""The kept list: a JSON line whenever something is known of a fault, the last one counts.

And the reasons: faults that change nothing, one JSON line each, `{"id", "path", "diff", "reason"}`.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

FOLDER = Path(__file__).parent
REASONS = FOLDER / "survivors.jsonl"


@dataclass(frozen=True)
class Record:
    """What is known of a drawn fault.

    Attributes:
        id, path, line, package, kind, edit: of the fault.
        diff: its lines before and after.
        verdict: "drawn", "found", "survived" or "undecided".
        stage: the last tests that were run: "matching", "nearest", "whole" or "named".
        witness: the test that found it; "" where the process ended or a loop did not.
        note: why it is undecided.
        deselected: tests that fail without the fault too.
        confirmed: whether the witness passes without the fault.
        seconds: of all stages.
    """

    id: str
    path: str
    line: int
    package: str
    kind: str
    edit: str
    diff: tuple[str, ...]
    verdict: str = "drawn"
    stage: str = ""
    witness: str = ""
    note: str = ""
    deselected: tuple[str, ...] = ()
    confirmed: bool = False
    seconds: float = 0.0


class KeptList:
    """Records in the order of the draw, written as they change."""

    def __init__(self, file: Path) -> None:
        self._file, self._records = file, dict[str, Record]()
        if file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                values = json.loads(line)
                values |= {name: tuple(values[name]) for name in ("diff", "deselected")}
                self._records[values["id"]] = Record(**values)

    @property
    def records(self) -> tuple[Record, ...]:
        """All records."""
        return tuple(self._records.values())

    def write(self, record: Record, **changes: object) -> Record:
        """Append a record with changes."""
        record = replace(record, **changes)
        self._records[record.id] = record
        with self._file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(asdict(record), ensure_ascii=False) + "\n")
        return record

    def tidy(self) -> None:
        """Keep the last line of each fault."""
        lines = (json.dumps(asdict(record), ensure_ascii=False) for record in self.records)
        self._file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def reasons(file: Path = REASONS) -> dict[str, str]:
    """Return the reasons by the fault's identity."""
    if not file.exists():
        return {}
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {line["id"]: line["reason"] for line in lines}


def table(records: Iterable[Record], why: dict[str, str]) -> str:
    """Return figures by package, then the survivors."""
    done = [record for record in records if record.verdict != "drawn"]
    lines = [f"{'package':26}{'run':>5}{'found':>7}{'nothing':>9}{'survived':>10}{'undecided':>11}"]
    for name in (*sorted({record.package for record in done}), ""):
        of_it = [record for record in done if name in ("", record.package)]
        rest = [record for record in of_it if record.verdict != "found"]
        equal = sum(record.id in why for record in rest)
        survived = sum(record.verdict == "survived" and record.id not in why for record in rest)
        found, undecided = len(of_it) - len(rest), len(rest) - equal - survived
        lines.append(
            f"{name or 'all':26}{len(of_it):5}{found:7}{equal:9}{survived:10}{undecided:11}"
            f"{found / max(len(of_it), 1):8.0%}"
        )
    for record in done:
        if record.verdict == "found":
            continue
        note = why.get(record.id) or record.note or "no reason known"
        lines += ["", f"{record.id} {record.verdict}, {record.path}:{record.line}: {note}"]
        lines += [f"    {line}" for line in record.diff]
    return "\n".join(lines)


def is_enough(records: Iterable[Record], why: dict[str, str], least: float) -> bool:
    """Whether this share was found, and the rest has reasons."""
    done = [record for record in records if record.verdict != "drawn"]
    rest = [record for record in done if record.verdict != "found"]
    named = all(record.id in why for record in rest)
    return bool(done) and len(done) - len(rest) >= least * len(done) and named
