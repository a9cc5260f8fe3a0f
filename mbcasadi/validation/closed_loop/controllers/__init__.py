"""Controllers that are not ours, as something that a closed loop runs."""

from mbcasadi.validation.closed_loop.controllers.as_runnable import Controllable, as_runnable
from mbcasadi.validation.closed_loop.controllers.python_callable import Policy
from mbcasadi.validation.closed_loop.controllers.shared_library import (
    SharedLibrary,
    shared_library,
)

__all__ = ["Controllable", "Policy", "SharedLibrary", "as_runnable", "shared_library"]
