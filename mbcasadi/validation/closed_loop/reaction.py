"""What a robot does at once about what it measures, in front of its law: generated C as well.

A schedule says what should happen; a reaction changes it by what does: a mask by measured
touch-down, a reference that lowers a foot because the robot is falling. It is one Function,

    (q, v, act, f_measured, t, scheduled_ref, scheduled_mask, scheduled_tuning, z)
        → (ref, mask, tuning, z_next),

of which it may leave out any. What it has no output for stays as scheduled.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen import CProject, export_c
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column
from mbcasadi.validation.closed_loop.compiled_law import Caller

Array = NDArray[np.float64]
SCHEDULED = ("ref", "mask", "tuning")
TAKES = ("q", "v", "act", "f_measured", "t", *(f"scheduled_{name}" for name in SCHEDULED), "z")
GIVES = (*SCHEDULED, "z_next")


class Reaction:
    """A compiled reaction; `ScenarioOptions(reaction=)` takes it.

    Attributes:
        project: the exported folder.
        z0: state to start from.
    """

    @checked
    def __init__(self, project: CProject, z0: ArrayLike = ()) -> None:
        self.project = project
        self._call = Caller(project.load())
        _require_names(self._call.names_in, self._call.names_out)
        self.z0 = column("z0", z0, self._call.size("z"))
        self.reset()

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of its inputs."""
        return self._call.names_in

    def reset(self) -> None:
        """Return to the initial state, before a run."""
        self._z = self.z0

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Return what it changes of ref, mask and tuning at this tick."""
        scheduled = {f"scheduled_{name}": inputs[name] for name in SCHEDULED}
        outputs = self._call({**inputs, **scheduled, "z": self._z})
        self._z = outputs.get("z_next", self._z)
        return {name: outputs[name] for name in SCHEDULED if name in outputs}


def _require_names(names_in: Sequence[str], names_out: Sequence[str]) -> None:
    """Raise unless all inputs and outputs are those of a reaction."""
    for kind, given, known in (("inputs", names_in, TAKES), ("outputs", names_out, GIVES)):
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ProblemError(
                f"a reaction with the {kind} {unknown}; expected some of {', '.join(known)}"
            )
    if ("z" in names_in) != ("z_next" in names_out):
        raise ProblemError("a reaction has z and z_next, or neither; expected both or none")


@checked
@contextmanager
def reaction(function: ca.Function, z0: ArrayLike = ()) -> Iterator[Reaction]:
    """Export a reaction to a temporary folder, compile it, and yield it.

    Args:
        function: with any of the inputs `q`, `v`, `act`, `f_measured`, `t`, `scheduled_ref`,
            `scheduled_mask`, `scheduled_tuning`, `z` and the outputs `ref`, `mask`, `tuning`,
            `z_next`, by name. What it has no output for stays as scheduled.
        z0: its state to start from.

    Raises:
        ProblemError: another input or output, z without z_next.
        ShapeError: z0 has another size than z.
        ExportError: the C could not be generated or built.
    """
    _require_names(function.name_in(), function.name_out())
    with tempfile.TemporaryDirectory(prefix="mbcasadi-") as folder:
        yield Reaction(export_c(function, Path(folder) / "reaction"), z0)
