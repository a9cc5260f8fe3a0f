"""From a controller, or any CasADi Function, to a self-contained folder of C99."""

from typing import TYPE_CHECKING

from mbcasadi.lazy_imports import lazy_names

if TYPE_CHECKING:
    from mbcasadi.codegen import cache as cache
    from mbcasadi.codegen.batches.batch import batch as batch
    from mbcasadi.codegen.batches.batch_function import BatchFunction
    from mbcasadi.codegen.batches.library import BatchBuild
    from mbcasadi.codegen.calls import Memory
    from mbcasadi.codegen.compiler import BuildResult
    from mbcasadi.codegen.count import Size
    from mbcasadi.codegen.export import export_c
    from mbcasadi.codegen.project import CProject
    from mbcasadi.codegen.project_folder import open_project
    from mbcasadi.codegen.supervision.replay_log import LogReplay
    from mbcasadi.codegen.supervision.supervised import Supervised
    from mbcasadi.codegen.supervision.supervision import InputLimits, Supervision, TickEvent
    from mbcasadi.codegen.supervision.tick_log import TickLog
    from mbcasadi.codegen.targets.footprint import Footprint
    from mbcasadi.codegen.timing import LongestTick, TickTimes
    from mbcasadi.codegen.two_rates.controller import TwoRatesController
    from mbcasadi.codegen.two_rates.export import export_two_rates
    from mbcasadi.codegen.two_rates.project import TwoRatesProject, open_two_rates
    from mbcasadi.description.two_rates import TwoRates
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "BatchBuild",
    "BatchFunction",
    "BuildResult",
    "CProject",
    "Footprint",
    "InputLimits",
    "LogReplay",
    "LongestTick",
    "Memory",
    "Size",
    "Supervised",
    "Supervision",
    "TickEvent",
    "TickLog",
    "TickTimes",
    "TwoRates",
    "TwoRatesController",
    "TwoRatesProject",
    "export_c",
    "export_two_rates",
    "open_project",
    "open_two_rates",
]

NOT_STARRED = ("batch",)
"""Public names that `import *` leaves out: they are words that people have variables of."""
