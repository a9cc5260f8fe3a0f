"""Robots of a folder at the first try; the same command goes on with what its store has."""

import argparse
import re
from itertools import product
from pathlib import Path

from robots.first_try.packages import COLLECTIONS, models_of, name_of
from robots.first_try.trials import Store, Trial, tried
from robots.first_try.variants import VARIANTS
from robots.models import add_argument, folder


def line_of(trial: Trial) -> str:
    """Return a line of the table."""
    name = f"{trial.robot} {trial.variant}".strip()
    cells = name, trial.kind, trial.task or "default", trial.verdict, trial.why
    return "| " + " | ".join(cells) + f" | {trial.seconds:.0f} |"


def main() -> None:
    """Run the trials, and print the table and how many passed of each kind."""
    parser = argparse.ArgumentParser(prog="robots.first_try", description=__doc__)
    add_argument(parser)
    parser.add_argument("--only", default="", help="regular expression found in a file's name")
    parser.add_argument("--task", nargs="*", default=[""], help="of `init`; by default its own")
    parser.add_argument("--collection", choices=COLLECTIONS, help="models of a Python package")
    parser.add_argument("--variant", nargs="*", default=[""], choices=VARIANTS, help="of models")
    parser.add_argument("--store", type=Path, default=Path("first_try.jsonl"))
    parser.add_argument("--fast", action="store_true", help="`validate --fast`: not the shipped C")
    given = parser.parse_args()
    store = Store(given.store)
    files = models_of(given.collection) if given.collection else sorted(folder().glob("*.xml"))
    robots = [path for path in files if re.search(given.only, name_of(path))]
    print("| robot | kind | task | verdict | why | s |\n|---|---|---|---|---|---|")
    for path, task, variant in product(robots, given.task, given.variant):
        if not store.has(name_of(path), task, variant):
            store.add(tried(path, task, variant, fast=given.fast))
    chosen = [
        each
        for each in store.trials
        if (each.task in given.task and each.variant in given.variant)
        and re.search(given.only, each.robot)
    ]
    for trial in chosen:
        print(line_of(trial))
    for kind in sorted({trial.kind for trial in chosen}):
        of_kind = [trial.verdict for trial in chosen if trial.kind == kind]
        print(f"{kind or 'refused'}: {of_kind.count('passed')} of {len(of_kind)} passed")


if __name__ == "__main__":
    main()
