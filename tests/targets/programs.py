"""Exports with recorded closed loops, and the tools that build and run them for a target."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.codegen import CProject
from mbcasadi.codegen.targets.replay import Replay, read_replay, replay_files, write_record
from mbcasadi.control.laws import LawOptions
from mbcasadi.control.regulators import lqr

TICKS = 2000
SAME = 1e-12  # relative to the largest value of an output over the record
MORE = 3.0  # see `other_sines`
FEET = ("FL", "FR", "RL", "RR")
REQUIRED = "MBCASADI_TARGETS"  # set by `make targets`: a tool that is missing is a failure


def require(tool: str, package: str, search: str = "") -> str:
    """Return the path of a tool; skip, or fail in `make targets`, where it is missing."""
    path = shutil.which(tool, path=os.pathsep.join([os.environ["PATH"], search]))
    if path is None:
        message = f"{tool} is not installed: apt-get install {package}"
        if os.environ.get(REQUIRED):
            pytest.fail(message)
        pytest.skip(message)
    return path


@dataclass(frozen=True)
class Recorded:
    """An export and the inputs of a closed loop with it in MuJoCo."""

    project: CProject
    inputs: dict[str, np.ndarray]


def record(project, model, q0, reference, inputs=None, ticks=TICKS):
    """Run the compiled C in MuJoCo; returns its inputs, tick by tick."""
    period = project.manifest["period"]
    plant = mb.plant.Plant(model)
    steps = max(1, round(period / plant.timestep))
    plant.reset(q0)
    memory, rows = project.memory(), {"q": [], "v": [], "ref": []}
    z = np.array(project.manifest["z0"])
    for k in range(ticks):
        now = {"q": plant.q, "v": plant.v, "ref": reference(k * period)}
        outputs = project.step(memory, now | (inputs or {}) | {"z": z})
        z = outputs["z_next"]
        for name, values in rows.items():
            values.append(now[name])
        plant.step(outputs["u"], steps)
    constant = {name: np.atleast_2d(value) for name, value in (inputs or {}).items()}
    return {name: np.array(values) for name, values in rows.items()} | constant


def four_bar(folder):
    system = mb.read_mjcf(models.path("four_bar"))
    law = mb.control.InverseDynamicsQP(system, [mb.control.PostureTask(("crank",), kp=400.0)])
    project = mb.export_c(law, folder, name="four_bar")
    start, w = system.tree.q0[0], 2 * np.pi * 3.0

    def reference(t):
        ramp, rate = 1 - np.cos(w * t), w * np.sin(w * t)
        return np.array([start + 0.9 * ramp, 0.9 * rate, 0.9 * w**2 * np.cos(w * t)])

    return Recorded(project, record(project, models.path("four_bar"), system.tree.q0, reference))


def quadruped(folder):
    system = mb.read_mjcf(models.path("quadruped"))
    tasks = [
        mb.control.FrameTask("trunk", kind="body", kp=100.0, weight=100.0, name="base"),
        mb.control.PostureTask(kp=50.0),
    ]
    feet = [mb.Contact(name, friction=0.7, sides=4, min_force=2.0) for name in FEET]
    law = mb.control.InverseDynamicsQP(system, tasks, feet)
    project = mb.export_c(law, folder, name="quadruped")
    stand = system.tree.keyframes["stand"]
    at_stand, place = law.reference_at(stand), law.reference_slices["base.position"]

    def reference(t):
        # 50 mm at 2 Hz: few ticks change the active set
        now = at_stand.copy()
        now[place] += 0.05 * np.array([np.sin(4 * np.pi * t), 1 - np.cos(4 * np.pi * t), 0.0])
        return now

    inputs = {"mask": np.ones(4)}
    rows = record(project, models.path("quadruped"), stand, reference, inputs)
    return Recorded(project, rows)


def pendulum_lqr(folder):
    system = mb.read_mjcf(models.path("pendulum_on_four_bar"))
    linear = mb.linearize(system, mb.equilibrium(system))
    law = lqr(linear, np.repeat([10.0, 0.1], system.nv), 1.0, options=LawOptions(period=1e-3))
    project = mb.export_c(law, folder, name="lqr")
    start = linear.q + 0.02 * np.eye(system.nv)[2]
    model = models.path("pendulum_on_four_bar")
    return Recorded(project, record(project, model, start, lambda _t: np.zeros(0)))


def iteration(folder):
    system = mb.read_mjcf(models.path("pendulum_on_four_bar"))
    angles, speeds = np.eye(8)[[0, 2]].sum(axis=0), np.eye(8)[[4, 6]].sum(axis=0)
    Q = 10 * angles + speeds
    upright = np.concatenate([system.tree.q0, np.zeros(4)])
    step = mpc.StepOptions(order=3, pivot=False)
    ocp = mpc.optimal_control_problem(
        system, 20, 0.0125, [mpc.Cost(Q=Q, R=0.7, Q_end=15 * Q)], step=step
    )
    guess = mpc.initial_guess(ocp, np.tile(upright, (21, 1)), np.zeros((20, 1)))
    project = mb.export_c(mpc.real_time_iteration(ocp, guess), folder, name="rti")
    setpoints = {"setpoint_q": upright[:4], "setpoint_v": upright[4:]}
    held = ocp.parameters(**setpoints).ravel()
    start = system.tree.q0 + 0.05 * np.eye(4)[2]
    model = models.path("pendulum_on_four_bar")
    return Recorded(project, record(project, model, start, lambda _t: held))


MAKERS = {"four_bar": four_bar, "quadruped": quadruped, "lqr": pendulum_lqr, "rti": iteration}


def run(*command, cwd=None, **more):
    """Run a command; its messages are the failure's."""
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, **more
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def replay(recorded: Recorded, folder: Path, compiler, runner=(), flags=(), links=("-lm",)):
    """Build the replay program by `compiler`, run it by `runner`, and return what it wrote."""
    folder.mkdir(parents=True, exist_ok=True)
    manifest, source = recorded.project.manifest, recorded.project.folder
    for name, text in replay_files(manifest).items():
        (folder / name).write_text(text)
    write_record(manifest, folder, recorded.inputs)
    files = (source / f"{recorded.project.name}.c", "replay.c", "host_board.c")
    program = ("-std=c99", "-O2", *flags, f"-I{source}", *files, *links, "-o", "replay.exe")
    run(*compiler, *program, cwd=folder)
    run(*runner, "./replay.exe", cwd=folder)
    return read_replay(manifest, folder)


def difference(a: Replay, b: Replay) -> float:
    """Return the largest difference of outputs, relative to the column's size; bits first."""
    if a.outputs.tobytes() == b.outputs.tobytes():
        return 0.0
    size = np.maximum(1.0, np.abs(b.outputs).max(axis=0))
    return float((np.abs(a.outputs - b.outputs) / size).max())


def other_sines(recorded: Recorded, folder: Path) -> float:
    """Return the difference that is allowed where another C library has the sines.

    They may differ in the last bit. Where a law answers one such bit of its input by
    more than SAME, its answer to that bit on x86-64 is the measure.
    """
    moved = dict(recorded.inputs, q=np.nextafter(recorded.inputs["q"], np.inf))
    changed = replay(Recorded(recorded.project, moved), folder / "moved", ("gcc",))
    return max(SAME, MORE * difference(changed, replay(recorded, folder / "same", ("gcc",))))
