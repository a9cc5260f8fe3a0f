"""Run the campaign of least-distance problems; exit status 0 only if no answer was wrong."""

import argparse
import tempfile
from pathlib import Path

from campaign.least_distance.families import FAMILIES
from campaign.least_distance.run import SEED, run, table


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="campaign.least_distance", description=__doc__)
    parser.add_argument("--problems", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=SEED)
    names = {family.__name__: family for family in FAMILIES}
    parser.add_argument("--only", nargs="*", choices=names, default=list(names))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mbcasadi-campaign-") as folder:
        tallies = run(given.problems, Path(folder), [names[n] for n in given.only], given.seed)
    print(table(tallies))
    return int(any(tally.wrong for tally in tallies))


if __name__ == "__main__":
    raise SystemExit(main())
