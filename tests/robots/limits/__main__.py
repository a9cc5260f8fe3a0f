"""Run the table of limits from the command line; exit status 0 only if all goals are reached."""

import argparse
import os
from collections.abc import Callable, Iterable, Iterator

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

from robots.arms.row import HEAD, Figure
from robots.limits import drawn, meet, reach
from robots.limits.models import MissingModelError
from robots.models import VARIABLE


def rows(arms: Iterable[str], count: int, seed: int) -> Iterator[tuple[str, Callable]]:
    """Yield the name of each part and what gives its figures."""
    for name in arms:
        yield name, lambda name=name: reach.trials(name, reach.ARMS[name])
    yield "two ur10e", meet.figures
    yield "drawn encounters", lambda: drawn.figures(count, seed)


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="robots.limits", description=__doc__)
    parser.add_argument(
        "--models", help=f"folder of the robots' models; or the variable {VARIABLE}"
    )
    parser.add_argument("--arms", nargs="*", choices=reach.ARMS, default=list(reach.ARMS))
    parser.add_argument("--only", nargs="*", choices=("reach", "meet", "drawn"))
    parser.add_argument("--encounters", type=int, default=200, help="how many are drawn")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.models:
        os.environ[VARIABLE] = given.models
    kinds, missed = given.only or ("reach", "meet", "drawn"), 0
    print(HEAD)
    for name, part in rows(given.arms, given.encounters, given.seed):
        kind = {"two ur10e": "meet", "drawn encounters": "drawn"}.get(name, "reach")
        if kind not in kinds:
            continue
        try:
            for figure in part():
                print(figure, flush=True)
                missed += not figure.reached
        except MissingModelError as missing:
            print(Figure(name, f"missing: {missing}", "models missing", 1, 0), flush=True)
            missed += 1
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
