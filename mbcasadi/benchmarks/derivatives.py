"""Derivatives of inverse and of constrained forward dynamics: generated C beside Pinocchio.

Ours is compiled with `FLAGS` and called by a C program that times itself, caches warm. The peer is
called from Python (`derivative_peers`), on the same tree and states: `computeRNEADerivatives`,
`computeABADerivatives`, and with contacts `constraintDynamics` with
`computeConstraintDynamicsDerivatives`. Where eight points hold two feet, its feet are two
six-dimensional contacts. Beside the times are the operations written out, and the seconds and
the memory of the compiler.

Real robots are included from the folder of MJCF files that `MBCASADI_ROBOTS` names.
"""

import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import casadi as ca
import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi import models
from mbcasadi.benchmarks.derivative_peers import SUMS_AGREE, Pinocchio, installed, median_time
from mbcasadi.benchmarks.formulation_cases import random_states
from mbcasadi.benchmarks.formulations import count_written_out
from mbcasadi.benchmarks.kernel_peers import NATIVE
from mbcasadi.benchmarks.kernels import take_turns
from mbcasadi.benchmarks.rows import row
from mbcasadi.dynamics import forward_dynamics_derivatives, inverse_dynamics_derivatives
from mbcasadi.system import System, read_mjcf

FLAGS = ("-O2", "-march=native")
ROBOTS = "MBCASADI_ROBOTS"
STATES = 16
SPREAD = 0.1  # of the states about the authored pose, rad or m

Points = Mapping[str, Sequence[tuple[float, float, float]]]


@dataclass(frozen=True)
class Case:
    """A model and the points or bodies of it that are held to the world.

    Attributes:
        name: of the problem.
        path: MJCF file.
        points: of connections, by the name of their body, in its frame, m.
        soles: bodies that the peer holds in six directions, in the place of the points.
    """

    name: str
    path: Path
    points: Points = field(default_factory=dict)
    soles: tuple[str, ...] = ()

    def system(self) -> System:
        """Return the system with its points held, without contacts."""
        spec = mujoco.MjSpec.from_file(str(self.path))
        spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        for body, positions in self.points.items():
            for position in positions:
                equality = spec.add_equality()
                equality.type = mujoco.mjtEq.mjEQ_CONNECT
                equality.objtype = mujoco.mjtObj.mjOBJ_BODY
                equality.name1, equality.name2 = body, "world"
                equality.data[:3] = position
        return read_mjcf(spec)


QUADRUPED_FEET: Points = {f"{foot}_foot": [(0.0, 0.0, 0.0)] for foot in ("FL", "FR", "RL", "RR")}
GO2_FEET: Points = {f"{foot}_calf": [(-0.002, 0.0, -0.213)] for foot in ("FL", "FR", "RL", "RR")}
G1_SOLES = ("left_ankle_roll_link", "right_ankle_roll_link")
G1_POINTS: Points = {
    sole: [(x, y, -0.03) for x in (-0.05, 0.12) for y in (-0.03, 0.03)] for sole in G1_SOLES
}


ROBOT_CASES: tuple[tuple[str, str, Points, tuple[str, ...]], ...] = (
    ("panda", "Panda", {}, ()),
    ("go2", "Go2", {}, ()),
    ("go2", "Go2 on four feet", GO2_FEET, ()),
    ("g1", "G1", {}, ()),
    ("g1", "G1 on eight points", G1_POINTS, G1_SOLES),
    ("cassie", "Cassie with its loops", {}, ()),
)
"""End of the file's name, name of the problem, points, soles."""


def default_cases() -> tuple[Case, ...]:
    """Return the models of the package and, where the folder is named, real robots."""
    quadruped = models.path("quadruped")
    cases = [
        Case("quadruped", quadruped),
        Case("quadruped on four feet", quadruped, QUADRUPED_FEET),
        Case("humanoid", models.path("humanoid")),
    ]
    folder = os.environ.get(ROBOTS)
    files = (
        {} if folder is None else {p.stem.split("__")[-1]: p for p in Path(folder).glob("*.xml")}
    )
    cases += [
        Case(name, files[file], points, soles)
        for file, name, points, soles in ROBOT_CASES
        if file in files
    ]
    return tuple(cases)


def run(quick: bool = False) -> dict[str, Any]:
    """Time the derivatives; return `{"rows", "flags", "operations", "compiler"}`.

    Args:
        quick: fewer samples, and the first two models.
    """
    rounds = 20 if quick else 200
    cases = default_cases()[: 2 if quick else None]
    results: dict[str, Any] = {
        "rows": [],
        "flags": " ".join(FLAGS),
        "operations": {},
        "compiler": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        for k, case in enumerate(cases):
            work = Path(folder) / str(k)
            work.mkdir()
            _add_case(results, case, work, rounds)
    return results


def _add_case(results: dict[str, Any], case: Case, work: Path, rounds: int) -> None:
    """Add the rows of one case: of inverse dynamics where nothing is held, and of forward."""
    system = case.system()
    states = random_states(system, SPREAD, STATES)
    np.savetxt(work / "states.txt", states, fmt="%.17g")
    builds: dict[str, Callable[[], ca.Function]] = {}
    if not case.points:
        builds["inverse dynamics"] = partial(inverse_dynamics_derivatives, system)
    builds["forward dynamics"] = partial(forward_dynamics_derivatives, system)
    peer, times = _peer(case, system, states, rounds)
    for quantity, build in builds.items():
        function, label = build(), f"{case.name}, nv {system.nv}, nc {system.nc}"
        program, compiler = _compiled(function, work / quantity.split()[0])
        command = [str(program), str(work / "states.txt"), str(STATES), str(rounds)]
        ours = float(take_turns([command], 3)[0]["warm"])
        what = f"derivatives of {quantity}"
        results["rows"].append(row(label, what, ours, peer, times.get(quantity)))
        key = f"{label}: {what}"
        results["operations"][key] = count_written_out(function)
        results["compiler"][key] = f"{compiler.seconds:.1f} s, {compiler.megabytes:.0f} MB"


def _peer(
    case: Case, system: System, states: NDArray[np.float64], rounds: int
) -> tuple[str, dict[str, float]]:
    """Return the peer's name and its times by quantity."""
    tree = system.tree
    assert tree is not None  # it was read from a model
    if not installed():
        return "Pinocchio (absent: install pin)", {}
    if system.nc and not case.points:
        return "- (Pinocchio's reader has no loops)", {}
    points = {} if case.soles else {k: [np.array(p) for p in v] for k, v in case.points.items()}
    peer = Pinocchio(tree, points, case.soles)
    q = states[0, : tree.nq]
    M = system.mass_matrix(q).full()
    dofs = [joint.dof for joint in tree.joints if joint.kind in ("slide", "hinge")]
    if not np.isclose(peer.inertia(tree, q), M[dofs, dofs].sum(), rtol=SUMS_AGREE):
        return "Pinocchio (computes another M: not compared)", {}
    calls = {"inverse dynamics": peer.inverse, "forward dynamics": peer.forward}
    name = f"Pinocchio {peer.version} from Python" + (", 6D contacts" if case.soles else "")
    return name, {
        quantity: median_time(make(tree, states), STATES, rounds)
        for quantity, make in calls.items()
    }


@dataclass(frozen=True)
class Compiler:
    """What the compiler took: CPU seconds, and its largest process in MB."""

    seconds: float
    megabytes: float


def _compiled(function: ca.Function, work: Path) -> tuple[Path, Compiler]:
    """Generate and compile a timing program of a Function."""
    source, program = work.with_suffix(".c"), work.with_suffix("")
    generator = ca.CodeGenerator(source.name)
    generator.add(function)
    source.write_text(generator.dump())
    command = [os.environ.get("CC", "cc"), *FLAGS, f"-I{NATIVE}", f"-DFUNCTION={function.name()}"]
    command += [str(source), str(NATIVE / "any_function.c"), "-o", str(program), "-lm"]
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return program, Compiler(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
