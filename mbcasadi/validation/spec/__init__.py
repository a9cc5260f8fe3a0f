"""Controllers and their motion as small TOML files. Needs the extra `tools` (pydantic).

Raises:
    MissingExtraError: it is not installed.
"""

from mbcasadi.extras import require_extra

try:
    import pydantic as _pydantic  # noqa: F401
except ImportError:
    require_extra("tools", "a controller's file", "pydantic")
    raise

from typing import TYPE_CHECKING

from mbcasadi.lazy_imports import lazy_names

if TYPE_CHECKING:
    from mbcasadi.validation.spec.common import Spec
    from mbcasadi.validation.spec.experiment import Experiment, example_inputs
    from mbcasadi.validation.spec.kinds import (
        build_experiment,
        build_exported,
        experiment_for_system,
    )
    from mbcasadi.validation.spec.logs import estimate_log_of_spec
    from mbcasadi.validation.spec.motion_options import MotionOptions
    from mbcasadi.validation.spec.propose import propose_spec
    from mbcasadi.validation.spec.read import json_schema, parse_spec, read_spec
    from mbcasadi.validation.spec.run import (
        cases_of_spec,
        film_worst,
        run_campaign,
        run_case,
        run_margin,
        run_spec,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Experiment",
    "MotionOptions",
    "Spec",
    "build_experiment",
    "build_exported",
    "cases_of_spec",
    "estimate_log_of_spec",
    "example_inputs",
    "experiment_for_system",
    "film_worst",
    "json_schema",
    "parse_spec",
    "propose_spec",
    "read_spec",
    "run_campaign",
    "run_case",
    "run_margin",
    "run_spec",
]
