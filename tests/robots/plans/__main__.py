"""Prints the table of plans without legs; exit status 0 only if all goals are reached."""

import argparse
import os
from importlib import import_module

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

from robots.arms.row import HEAD
from robots.models import add_argument

ROWS = ("drone", "swing_up", "obstacles", "stewart", "hopper")


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="robots.plans", description=__doc__)
    parser.add_argument("--only", nargs="*", choices=ROWS, default=list(ROWS))
    add_argument(parser)
    missed = 0
    given = parser.parse_args()
    print(HEAD)
    for name in given.only:
        for figure in import_module(f"robots.plans.{name}").figures():
            print(figure, flush=True)
            missed += not figure.reached
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
