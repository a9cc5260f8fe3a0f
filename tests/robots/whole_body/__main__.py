"""Table of robots that walk by MPC of the whole body; quadrupeds by MPC of a rigid body beside it.

Generated C in MuJoCo: mass +10 %, controls one tick late, plans one plan late, stock actuators.

cd tests && python -m robots.whole_body [--models FOLDER] [--only REGEX] [--sensors] [own | go2 …]
"""

import argparse

from robots import models
from robots.whole_body.humanoids import humanoid_rows, sprung_rows
from robots.whole_body.quadrupeds import quadruped_rows
from robots.whole_body.sensed import ESTIMATE_HEADS
from robots.whole_body.trials import HUMANOIDS, QUADRUPEDS, SPRUNG


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="robots.whole_body", description=__doc__)
    names = ["all", *QUADRUPEDS, *HUMANOIDS, *SPRUNG]
    parser.add_argument("robots", nargs="*", choices=names, default="all")
    parser.add_argument("--only", default="", metavar="REGEX", help="in lines")
    parser.add_argument("--sensors", action="store_true", help="an estimator gives q and v")
    models.add_argument(parser)
    options = parser.parse_args()
    rows_of = dict.fromkeys(QUADRUPEDS, quadruped_rows) | dict.fromkeys(HUMANOIDS, humanoid_rows)
    rows_of |= dict.fromkeys(SPRUNG, sprung_rows)
    heads = ["robot", "task", "ground", "planner", "m/s", "rad/s", "leans, mrad", "plans solved"]
    heads += ESTIMATE_HEADS * options.sensors
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for key in rows_of if "all" in options.robots else options.robots:
        for row in rows_of[key](key, options.only, options.sensors):
            print(row, flush=True)


if __name__ == "__main__":
    main()
