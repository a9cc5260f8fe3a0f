"""Every exception of the package.

Each message says what was found, what was expected and what to do. All of them derive from
`MbcasadiError`, so one `except` clause is enough for a program that only wants to report.
"""

import re

__all__ = [
    "AssemblyError",
    "CompilerError",
    "ExportError",
    "MbcasadiError",
    "MissingExtraError",
    "ModelError",
    "MotionError",
    "ProblemError",
    "RenderingError",
    "ShapeError",
    "SimulationError",
    "SolverError",
    "UnknownNameError",
    "UnsupportedFeatureError",
]


class MbcasadiError(Exception):
    """Base of every exception that this package raises on purpose."""


class ShapeError(MbcasadiError, ValueError):
    """An array or expression has the wrong shape, or holds NaN where numbers are needed."""


class UnknownNameError(MbcasadiError, KeyError):
    """A frame, joint, actuator or option is not known; the message lists the valid names."""

    def __str__(self) -> str:
        # `KeyError` would show the message in quotes, with its line breaks escaped.
        return str(self.args[0]) if self.args else ""


class ModelError(MbcasadiError, ValueError):
    """A model cannot be read: not found, invalid XML, or refused by MuJoCo's compiler."""


class UnsupportedFeatureError(ModelError):
    """A model holds a feature that would make the equations wrong if it were ignored."""


def compiler_error(what: str, error: Exception) -> ModelError:
    """Return what MuJoCo's compiler says of a model, and what to do where a plugin lacks."""
    text = str(error).strip()
    if re.search(r"plugin \S+ not found", text):
        text += (
            "; the library of the plugin is not loaded: call mujoco.mj_loadPluginLibrary(path) "
            "first (MuJoCo's own are in the folder plugin of its package)"
        )
    return ModelError(f"MuJoCo cannot compile {what}: {text}")


class ProblemError(MbcasadiError, ValueError):
    """A control problem contradicts itself (empty limits, no task, negative weights)."""


class SolverError(MbcasadiError, RuntimeError):
    """A solver is not available, or lacks a required feature."""


class ExportError(MbcasadiError, RuntimeError):
    """Generated C could not be written, built or loaded."""


class CompilerError(ExportError):
    """No C compiler was found, or it rejected the generated code."""


class SimulationError(MbcasadiError, RuntimeError):
    """A simulation could not start or go on (inconsistent state, diverged plant)."""


class AssemblyError(SimulationError):
    """No pose was found that closes all constraints; the message names those left open."""


class ControllerError(MbcasadiError, RuntimeError):
    """A controller of a user raised, or answered a measurement with what is no control.

    `__cause__` is the error that it raised.
    """


class MotionError(SimulationError):
    """A simulated motion could not go on; `trajectory` holds what was reached."""

    def __init__(self, message: str, trajectory: object) -> None:
        super().__init__(message)
        self.trajectory = trajectory


class MissingExtraError(MbcasadiError, ImportError):
    """An optional package is needed; the message gives the extra that installs it."""


class RenderingError(MbcasadiError, RuntimeError):
    """There is no renderer or no screen for a picture, a video or the viewer."""
