"""Run the campaign from the command line; exit status 0 only if no answer was wrong."""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported, in workers too

from campaign.cases import BUILDERS
from campaign.judge import WRONG
from campaign.robots import ROBOTS
from campaign.run import SEED, judged, run
from campaign.tally import table, total


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="campaign", description=__doc__)
    parser.add_argument("--problems", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", nargs="*", choices=[*BUILDERS, *ROBOTS], default=None)
    parser.add_argument("--robots", action="store_true", help="the robots in place of the cases")
    parser.add_argument("--state", type=int, help="one numbered state of the case in --only")
    given = parser.parse_args()
    if given.state is not None:
        if len(given.only or ()) != 1:
            parser.error("--state needs one case in --only")
        verdict, note = judged(given.only[0], given.state, given.seed)
        print(verdict, note)
        return int(verdict is not None and verdict.wrong)
    tallies = run(
        given.problems,
        given.workers,
        given.only or (list(ROBOTS) if given.robots else None),
        given.seed,
    )
    print(table(tallies))
    everything = total(tallies)
    return int(everything.count((*WRONG, "false infeasible")) > 0)


if __name__ == "__main__":
    raise SystemExit(main())
