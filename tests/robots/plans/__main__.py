"""Prints the table of plans without legs; exit status 0 only if all goals are reached."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

from robots.arms.row import print_table

if __name__ == "__main__":
    raise SystemExit(
        print_table(
            "robots.plans",
            __doc__,
            ("drone", "swing_up", "obstacles", "stewart", "hopper", "press"),
        )
    )
