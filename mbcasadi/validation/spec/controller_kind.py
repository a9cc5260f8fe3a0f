"""A type of controller: the table of its file, and what makes it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbcasadi.system import System
from mbcasadi.validation.spec.common import Spec
from mbcasadi.validation.spec.experiment import Experiment


class Kind(NamedTuple):
    """A type of controller: its table, and (values, system, q0) → its experiment."""

    table: type[Spec]
    build: Callable[[Any, System, NDArray[np.float64]], Experiment]
