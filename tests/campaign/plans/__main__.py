"""Judge ticks of plans over a horizon; exit status 0 only if no answer was wrong.

cd tests && python -m campaign.plans [--ticks 10000] [--only walker …]
"""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

from robots import models

from campaign.plans.problems import OF_FILES, PROBLEMS
from campaign.plans.run import SEED, run, table


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="campaign.plans", description=__doc__)
    parser.add_argument("--ticks", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=SEED)
    ours = [name for name in PROBLEMS if name not in OF_FILES]
    parser.add_argument("--only", nargs="*", choices=[*PROBLEMS], default=ours)
    models.add_argument(parser)
    given = parser.parse_args()
    tallies = [run(name, given.ticks // len(given.only), given.seed) for name in given.only]
    print(table(tallies))
    return int(any(tally.wrong for tally in tallies))


if __name__ == "__main__":
    raise SystemExit(main())
