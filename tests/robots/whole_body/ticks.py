"""Times and sizes of plans of whole bodies in C: `python -m robots.whole_body.ticks g1 cassie own`.

Ticks are those of a walk of 2 s whose plant is the problem's own step, one tick late: a plan begins
where that step leads. (What `references` predict is for a robot below its law, which holds springs;
here they are free.) N = 20 samples of 20 ms, the defaults of `whole_body_mpc`. Of several passes
each tick counts with the least time.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported

import argparse
import tempfile
from pathlib import Path

import numpy as np

from mbcasadi import mpc
from mbcasadi.codegen import export_c
from robots import models
from robots.ground import Array, Ground
from robots.whole_body.humanoids import walk_of
from robots.whole_body.quadrupeds import TROT
from robots.whole_body.trials import HORIZON, HUMANOIDS, PERIOD, QUADRUPEDS, SPRUNG, walker

FLAGS = ("-O3", "-march=native")
TICKS, REPEATS, SPEED, STARTS = 100, 5, 0.3, 0.4  # m/s, s
HEAD = "| robot | tick | p99 | largest | preparation | feedback | C, library, memory | compiler |"


def plan_of(key: str) -> mpc.WholeBodyMPC:
    """Return the plan of a robot and its follower."""
    robot = walker(key, Ground())
    gait = TROT if key in QUADRUPEDS else walk_of(robot)
    return mpc.whole_body_mpc(
        robot.system, HORIZON, PERIOD, robot.feet, gait=gait, q0=robot.q0, name=key
    )


def walk(whole: mpc.WholeBodyMPC, loaded: object) -> tuple[dict[str, Array], int]:
    """Return the inputs (ticks, ·) of the plan in a walk, and how many have no solution.

    The plant is the problem's own step, whose positions are half an interval ahead of its rates.
    """
    ocp, refs = whole.plan.ocp, whole.references
    nq, nv = ocp.system.nq, ocp.system.nv
    x, z = whole.plan.controller.z0[: nq + nv].copy(), np.array(whole.plan.controller.z0)
    states = {key: np.zeros(refs.numel_in(key)) for key in refs.name_in()}
    states["plan"], states["z"] = whole.u0[: refs.numel_in("plan")], whole.z0[: refs.numel_in("z")]
    inputs, failed = {key: list[Array]() for key in ("q", "v", "ref", "z")}, 0
    acts = None  # the control and p of the plan that acts, one tick late
    for tick in range(TICKS):
        t = tick * PERIOD
        q = np.array(ocp.system.integrate(x[:nq], -PERIOD / 2 * x[nq:])).ravel()
        states |= {"q": q, "v": x[nq:], "t": t}
        states["command"] = np.zeros(refs.numel_in("command"))
        states["command"][0] = SPEED * (t > STARTS)
        found = refs(**states)
        q, v, ref, states["z"] = (
            found[key].full().ravel() for key in ("first_q", "first_v", "ref", "z_next")
        )
        if acts is not None:  # the state at which this plan acts
            x = np.array(ocp.dynamics(x, *acts)).ravel()
            q, v = x[:nq], x[nq:]
        for key, value in zip(inputs, (q, v, ref, z), strict=True):
            inputs[key].append(value)
        answer = loaded(q, v, ref, z)
        u, z = (np.array(part).ravel() for part in answer[:2])
        failed += float(answer[2]) > 1
        states["plan"] = np.array(answer[-1]).ravel()
        acts = u, ref[: ocp.np_]
    return {key: np.array(values) for key, values in inputs.items()}, failed


def line(key: str, folder: Path) -> str:
    """Return the line of a robot."""
    whole = plan_of(key)
    project = export_c(whole.plan, folder / key)
    size = project.size(flags=FLAGS)
    inputs, failed = walk(whole, project.load(flags=FLAGS))
    times = project.time(inputs, REPEATS, flags=FLAGS)
    best = [
        1e3 * part.seconds.reshape(REPEATS, -1).min(axis=0)
        for part in (times, times.preparation, times.feedback)
    ]
    ticks = f"{np.median(best[0]):.2f} ms | {np.percentile(best[0], 99):.2f} | {best[0].max():.2f}"
    phases = " | ".join(f"{np.median(part):.2f}" for part in best[1:])
    sizes = f"{project.source.stat().st_size / 1e6:.2f} MB, {size.library_bytes / 1e3:.0f} kB, "
    sizes += f"{project.manifest['memory_bytes'] / 1e6:.2f} MB"
    build = f"{size.build.seconds:.0f} s, {size.build.peak_bytes / 1e6:.0f} MB"
    name = (QUADRUPEDS | HUMANOIDS | SPRUNG)[key]
    words = f"| {name} | {ticks} | {phases} | {sizes} | {build} |"
    return words + (f" {failed} of {TICKS} without a solution" if failed else "")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="robots.whole_body.ticks", description=__doc__)
    parser.add_argument("robot", nargs="+", choices=[*QUADRUPEDS, *HUMANOIDS, *SPRUNG])
    models.add_argument(parser)
    print(HEAD, "|---" * 8 + "|", sep="\n", flush=True)
    with tempfile.TemporaryDirectory(prefix="mbcasadi-ticks-") as folder:
        for each in parser.parse_args().robot:
            print(line(each, Path(folder)), flush=True)
