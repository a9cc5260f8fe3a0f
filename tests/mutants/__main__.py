"""Plant faults in a copy of the tree, and report which share of them the tests find.

Exit status 0 only if at least 90 % were found and every survivor has a reason in survivors.jsonl.
"""

import argparse
import os
import tempfile
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported, in tests too

from mutants.kept_list import FOLDER, KeptList, is_enough, reasons, table
from mutants.plan import Plan, drawn, try_all
from mutants.trial import copy_tree, run_tests

ROOT = Path(__file__).resolve().parents[2]
LEAST_FOUND = 0.9
QUICK_TESTS = ("tests/test_import.py",)


def options() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--list", type=Path, help="the kept list; default mutants/seed-SEED.jsonl")
    parser.add_argument("--resume", action="store_true", help="go on with the list")
    parser.add_argument(
        "--again", nargs="*", default=(), choices=["survived", "undecided"], help="try these again"
    )
    parser.add_argument(
        "--only", nargs="*", default=(), metavar="PACKAGE_OR_ID", help="try these now"
    )
    parser.add_argument(
        "--then",
        choices=["nothing", "nearest", "whole"],
        default="whole",
        help="tests for those that survive the matching folder",
    )
    parser.add_argument("--tests", nargs="*", default=(), help="run these in place of all others")
    parser.add_argument("--workers", type=int, default=2, help="processes for the whole suite")
    parser.add_argument("--limit", type=float, help="s for a stage, beyond it: undecided")
    parser.add_argument("--draw", action="store_true", help="write the list, try nothing")
    given = parser.parse_args()
    given.list = given.list or FOLDER / f"seed-{given.seed}.jsonl"
    if given.list.exists() and not given.resume:
        parser.error(f"{given.list} exists; --resume goes on with it, --list names another one")
    return given


def main() -> int:
    """Return the exit status."""
    given = options()
    kept = KeptList(given.list)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder)
        copy_tree(ROOT, copy)
        if not kept.records:
            for record in drawn(copy, given.seed, given.count):
                kept.write(record)
        packages = {record.package for record in kept.records}
        if missing := set(given.only) - packages - {record.id for record in kept.records}:
            raise SystemExit(f"no fault {sorted(missing)}; expected an id or {sorted(packages)}")
        for record in kept.records:
            if record.verdict in given.again or record.id in given.only:
                kept.write(record, verdict="drawn", confirmed=False)
        if not given.draw:
            clean = run_tests(copy, QUICK_TESTS)
            if clean.verdict != "passed":
                raise SystemExit(f"{QUICK_TESTS} fail without a fault:\n{clean.output}")
            plan = Plan(copy, given.then, given.workers, given.limit, given.only, given.tests)
            try_all(kept, plan, lambda line: print(line, flush=True))
    kept.tidy()
    why = reasons()
    print(table(kept.records, why))
    return int(not is_enough(kept.records, why, LEAST_FOUND))


if __name__ == "__main__":
    raise SystemExit(main())
