"""All drawn faults, one after the other: matching tests, then others for those that survive."""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from mutants.draw import PACKAGE, draw, faults_of, matching_tests, package_of
from mutants.fault import changed_lines
from mutants.kept_list import KeptList, Record
from mutants.relevance import by_relevance
from mutants.trial import Outcome, planted, run_tests

NEAREST = 6
"""Test files that the second stage "nearest" runs."""


@dataclass(frozen=True)
class Plan:
    """How faults are tried.

    Attributes:
        copy: of the tree.
        then: tests for those that survive the matching ones: "nothing", "nearest" (the `NEAREST`
            test files that speak most of the module) or "whole" (the suite).
        workers: processes of a run of the whole suite.
        limit: s for a stage; beyond it the fault is undecided. None: no limit.
        only: packages and identities that are tried; all where there are none.
        tests: files or names that are run in place of all stages, from the root.
    """

    copy: Path
    then: str = "whole"
    workers: int = 1
    limit: float | None = None
    only: Sequence[str] = ()
    tests: Sequence[str] = ()

    def stages(self, path: str, line: int) -> list[tuple[str, list[str], int]]:
        """Return names, test files and processes of the stages for a line of a file."""
        if self.tests:
            return [("named", list(self.tests), 1)]
        matching = matching_tests(package_of(path), self.copy)
        others = by_relevance(
            self.copy,
            path,
            line,
            [
                str(file.relative_to(self.copy))
                for file in (self.copy / "tests").rglob("test_*.py")
                if "mutants" not in file.parts[-2:]
            ],
        )
        others = [test for test in others if test not in matching]
        stages = [("matching", by_relevance(self.copy, path, line, matching), 1)]
        if self.then == "nearest":
            stages.append(("nearest", others[:NEAREST], 1))
        if self.then == "whole":
            stages.append(("whole", others, self.workers))
        return stages


def drawn(copy: Path, seed: int, count: int) -> list[Record]:
    """Return the first faults of the draw that give another text."""
    texts = {
        str(file.relative_to(copy)): file.read_text(encoding="utf-8")
        for file in sorted((copy / PACKAGE).rglob("*"))
        if file.suffix in (".py", ".in")
    }
    faults = draw((f for path, text in texts.items() for f in faults_of(path, text)), seed)

    def records():
        for fault in faults:
            package, text = package_of(fault.path), texts[fault.path]
            after = fault.plant(text)
            if after is not None and after != text:
                diff = tuple(changed_lines(text, after))
                named = (fault.identity, fault.path, fault.line, package, fault.kind, fault.edit)
                yield Record(*named, diff)

    return list(islice(records(), count))


def try_fault(record: Record, plan: Plan) -> dict[str, object]:
    """Return what the tests say, as changes of the record."""
    file, start = plan.copy / record.path, time.monotonic()
    text = file.read_text(encoding="utf-8")
    places = {fault.identity: fault for fault in faults_of(record.path, text)}
    if record.id not in places:
        return {"verdict": "undecided", "note": "the line is no longer there"}
    after = places[record.id].plant(text)
    assert after is not None  # was drawn
    answer: dict[str, object] = {"verdict": "survived", "stage": "", "witness": "", "note": ""}
    with planted(file, after):
        for stage, tests, workers in plan.stages(record.path, record.line):
            outcome = (
                run_tests(
                    plan.copy,
                    tests,
                    workers=workers,
                    limit=plan.limit,
                    deselected=record.deselected,
                )
                if tests
                else Outcome("passed")
            )
            answer["stage"] = stage
            if outcome.verdict == "failed":
                answer |= {"verdict": "found", "witness": outcome.witness}
                if not outcome.witness:
                    answer["note"] = without_folders(outcome.output)[-200:]
                break
            if outcome.verdict == "undecided":
                answer |= {
                    "verdict": "undecided",
                    "note": f"{stage} tests: {without_folders(outcome.output)}",
                }
                break
    if plan.tests and answer["verdict"] == "survived":
        answer |= {"verdict": "undecided", "note": "only named tests were run"}
    return answer | {"seconds": round(time.monotonic() - start, 1)}


def without_folders(text: str) -> str:
    """Return the text with paths from the root cut to file names, for any machine."""
    return re.sub(r"(?<![\w.])/(?:[\w.+-]+/)+", "", text)


def try_all(kept: KeptList, plan: Plan, say: Callable[[str], None]) -> None:
    """Try what is drawn; then again, without tests that fail in the clean copy too."""
    while pending := [
        record
        for record in kept.records
        if record.verdict == "drawn"
        and (not plan.only or {record.package, record.id} & set(plan.only))
    ]:
        for i, record in enumerate(pending):
            result = kept.write(record, **try_fault(record, plan))
            say(
                f"{i + 1}/{len(pending)} {result.verdict:9} {result.seconds:6.0f} s  "
                f"{record.package}: {record.path}:{record.line} {record.kind}; "
                f"{result.witness or result.note}"
            )
        confirm(kept, plan, say)


def confirm(kept: KeptList, plan: Plan, say: Callable[[str], None]) -> None:
    """Run the tests that found faults in the clean copy; who fails there is no witness."""
    open_records = [
        record for record in kept.records if record.verdict == "found" and not record.confirmed
    ]
    witnesses = sorted({record.witness for record in open_records if record.witness})
    failing: set[str] = set()
    if witnesses:
        outcome = run_tests(plan.copy, witnesses, workers=plan.workers, first=False)
        failing = set(outcome.witness.split("\n")) if outcome.verdict == "failed" else set()
        if outcome.verdict == "failed" and not failing & set(witnesses):
            raise RuntimeError(f"tests of the clean copy did not run: {outcome.output}")
    for record in open_records:
        if record.witness in failing:
            say(f"{record.witness} fails without a fault too")
            deselected = (*record.deselected, record.witness)
            kept.write(record, verdict="drawn", witness="", deselected=deselected)
        else:
            kept.write(record, confirmed=True)
