"""A controller that a Python function of the user makes: `make = "module:function"`.

It runs code that stands beside the file, so it is made only where the caller allows it.
"""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, JsonValue

from mbcasadi.control import ControlLaw, InverseDynamicsQP
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.errors import ControllerError, ProblemError
from mbcasadi.system import System
from mbcasadi.validation.spec.common import Motion, Spec
from mbcasadi.validation.spec.controller_kind import Kind
from mbcasadi.validation.spec.experiment import Experiment
from mbcasadi.validation.spec.motion import slot_motion

Array = NDArray[np.float64]


class OwnSpec(Spec):
    """A controller of ours that `function(system, **arguments)` of a module returns."""

    make: Annotated[
        str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$", description="module:function")
    ]
    arguments: Annotated[dict[str, JsonValue], Field(description="Of the function.")] = Field(
        default={}
    )
    folder: Annotated[
        str, Field(description="Where the module is looked for first; that of the file by default.")
    ] = ""
    reference: Motion = Field(default={})


def build_own(spec: OwnSpec, system: System, q0: Array) -> Experiment:
    """Return what the function makes.

    Raises:
        ProblemError: no such module or function, or a result that is no controller.
        ControllerError: the function raised.
    """
    with _module_folder(spec.folder):
        function = _function(spec.make)
        try:
            law = function(system, **spec.arguments)
        except Exception as error:
            raise ControllerError(f"{spec.make} raised {type(error).__name__}: {error}") from error
    return experiment_of(law, q0, spec.reference, system, spec.make)


def experiment_of(law: Any, q0: Array, motion: Motion, system: System, maker: str) -> Experiment:
    """Return a controller that a function made, with its motion; `maker` is for messages.

    Raises:
        ProblemError: no controller, or a motion of one without a reference.
    """
    if not isinstance(law, (Controller, HasController)):
        raise ProblemError(
            f"{maker} returned {type(law).__name__}; expected a controller of "
            "mbcasadi.control or mbcasadi.mpc, or a description.Controller"
        )
    reference = None  # the law is left to hold the start
    if isinstance(law, (ControlLaw, InverseDynamicsQP)) and law.nref and motion:
        reference = slot_motion(law.slots, law.reference_at(q0), motion, system)
    elif motion:
        raise ProblemError(f"reference: {maker} returned a controller without one")
    return Experiment(law, q0, reference)


def _function(make: str) -> Callable[..., object]:
    """Return the function of a module.

    Raises:
        ProblemError: no such module, or no such function in it.
    """
    module, _, name = make.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ProblemError(
            f"make = {make!r}: {error}; expected the name of a module that can be imported, and of "
            "a function in it"
        ) from error
    if not callable(function):
        raise ProblemError(f"make = {make!r} is no function")
    result: Callable[..., object] = function
    return result


@contextmanager
def _module_folder(folder: str) -> Iterator[None]:
    """Look for modules in a folder first, meanwhile."""
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


KINDS = {"own": Kind(OwnSpec, build_own)}
