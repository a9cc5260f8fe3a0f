"""The door in: a compiled MuJoCo model becomes a `description`, with a coverage report."""

from mbcasadi.mjcf.load import Source, captured_warnings, load
from mbcasadi.mjcf.read import ModelData, read

__all__ = ["ModelData", "Source", "captured_warnings", "load", "read"]
