"""A stub of aligator on a trot: that of Crocoddyl, whose plans have multipliers here."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).with_name("whole_body_crocoddyl.py")))
