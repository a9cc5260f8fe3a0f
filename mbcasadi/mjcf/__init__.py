"""The door in: a compiled MuJoCo model becomes a `description`, with a coverage report."""

from mbcasadi.mjcf.load import Source, load
from mbcasadi.mjcf.read import ModelData, read

__all__ = ["ModelData", "Source", "load", "read"]
