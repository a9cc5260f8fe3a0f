"""Controllers and their motion as small TOML files. Needs the extra `tools` (pydantic)."""

from mbcasadi.validation.spec.build import Experiment, build, experiment
from mbcasadi.validation.spec.run import run_campaign, run_spec
from mbcasadi.validation.spec.schema import Spec, Trial, parse_spec, read_spec

__all__ = [
    "Experiment",
    "Spec",
    "Trial",
    "build",
    "experiment",
    "parse_spec",
    "read_spec",
    "run_campaign",
    "run_spec",
]
