"""Reads a compiled MuJoCo model into a `description`, with a coverage report."""

from mbcasadi.mjcf.load import Source, capture_warnings, load
from mbcasadi.mjcf.read import ModelData, read

__all__ = ["ModelData", "Source", "capture_warnings", "load", "read"]
