"""Lets the tests say `from twins import ...`, as the scripts in `examples/` do."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
