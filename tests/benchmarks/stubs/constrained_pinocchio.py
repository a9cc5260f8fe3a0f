"""A stub of the program that times Pinocchio's constrained dynamics."""

import sys
from pathlib import Path

assert set(sys.argv[5]) <= {"3", "6"}
print("sums", Path(sys.argv[2]).with_name("expected.txt").read_text())
print("warm", 1e-6)
