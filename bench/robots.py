"""Robots of others that benchmarks time where they are present."""

import os
from pathlib import Path

FOLDER = "MBCASADI_BENCH_MODELS"
"""Environment variable with a folder of further robots; files that are not there are left out."""

GO2, G1 = "men__unitree_go2__go2.xml", "men__unitree_g1__g1.xml"
IIWA = "men__kuka_iiwa_14__iiwa14.xml"
CASSIE = "men__agility_cassie__cassie.xml"


def robot_path(file: str) -> Path | None:
    """Return the file in the folder of `FOLDER`, or None where it is absent."""
    path = Path(os.environ.get(FOLDER, "")) / file
    return path if FOLDER in os.environ and path.is_file() else None
