"""The planar hopper of dm_control hops sixteen times in MuJoCo, from a schedule of its contacts.

Nobody plans a hop here: the reference is one crouched pose at rest, and a mask says when toe and
heel are on the floor and when they are in the air. Every 25 ms a real-time iteration plans the
next 0.6 s on the model, with the loads of the foot inside its friction cone, so that the foot
leaves the floor and is back on time. In the plan it lands without bouncing on a rigid floor;
MuJoCo's is elastic, and the foot sinks in by more than a centimetre: the `depth` of a measured
contact allows for that. A flight is a time in which MuJoCo finds no contact at all. The second
plant is 10 % heavier than the model.

You will see the centre of mass, the lowest point of the sole, and the lean of the trunk.
"""

import time
from importlib.util import find_spec
from pathlib import Path

import casadi as ca
import mujoco
import numpy as np
from panels import Panel, draw, figure_path

import mbcasadi as mb
from mbcasadi.mpc import (
    Bounded,
    RealTimeIteration,
    StepOptions,
    initial_guess,
    optimal_control_problem,
    real_time_iteration,
    stage_symbols,
)

SOLE, FRICTION = 0.04, 0.6  # m, radius of the foot; 1.0 in the plant
PERIOD, HORIZON = 0.025, 24  # s, samples
STANDS, FLIES, LANDED = 8, 10, 14  # samples before the first flight, in one and after one
LEAST_FLIGHT = 0.2  # s without contact
JOINTS = [0, -0.8, 1.6, -0.8]  # rad: waist, hip, knee, ankle of the crouched pose
ALONG = np.r_[5, 5, 20, np.ones(4), 0.5, 0.1, 0.1, np.full(4, 0.02)]  # weights of x, z, pitch, ...
AT_END = np.r_[30, 50, 200, np.ones(4), 10, 2, 10, np.full(4, 0.05)]


def law(model: mujoco.MjModel) -> tuple[RealTimeIteration, np.ndarray]:
    """Return the iteration on the model with three rows, two heights and a slip, and the pose."""
    free = mb.read_mjcf(model)
    q, v = ca.SX.sym("q", 7), ca.SX.sym("v", 7)
    toe, heel = (free.frame(name).pose(q)[0] for name in ("touch_toe", "touch_heel"))
    height = ca.vertcat(toe[2], heel[2]) - SOLE
    hopper = free.with_rows(q, v, phi=height).with_rows(q, v, psi=ca.jtimes(toe[0], q, v))
    system = hopper.with_mask()
    pose = np.r_[0, 0, 0, JOINTS]
    pose[1] = -float(ca.Function("height", [q], [height[0]])(pose))
    s = stage_symbols(system)
    motors = system.actuation(s.q) @ s.u
    load = mb.forward_dynamics(system)(q=s.q, v=s.v, f=motors, mask=s.mask)["lam"]
    grip = FRICTION * (load[0] + load[1])
    cone = ca.vertcat(load[:2], grip - load[2], grip + load[2]) / 100.0
    ocp = optimal_control_problem(
        system, HORIZON, PERIOD, Q=ALONG, R=0.3, Q_end=AT_END, symbols=s,
        path=[Bounded(cone, -1e-3, name="cone")],  # 0.1 N
        not_below={"phi0": 1, "phi1": 1}, step=StepOptions(order=2, newton=1),
    )  # fmt: skip
    still = np.tile(np.r_[pose, np.zeros(7)], (HORIZON + 1, 1))
    return real_time_iteration(ocp, initial_guess(ocp, still, np.zeros((HORIZON, 4)))), pose


def hop(
    rti: RealTimeIteration, pose: np.ndarray, plant: mujoco.MjModel, hops: int
) -> dict[str, np.ndarray]:
    """Return what MuJoCo does after each of its steps, and status and seconds of each tick."""
    data, z, steps = mujoco.MjData(plant), rti.controller.z0, round(PERIOD / plant.opt.timestep)
    data.qpos[:] = pose
    ends = [plant.site(name).id for name in ("touch_toe", "touch_heel")]
    rows, ticks = [], []
    for k in range(STANDS + hops * (FLIES + LANDED)):
        ahead = k - STANDS + np.arange(HORIZON + 1)
        on = (ahead < 0) | (ahead % (FLIES + LANDED) >= FLIES)
        p = rti.ocp.parameters(mask=np.repeat(on[:, None], 3, axis=1), setpoint_q=pose)
        begin = time.perf_counter()
        u, z, status, *_ = rti.function(data.qpos, data.qvel, p.ravel(), z)
        ticks.append([int(status), time.perf_counter() - begin])
        data.ctrl[:] = u.full().ravel()
        for _ in range(steps):
            mujoco.mj_step(plant, data)
            sole = data.site_xpos[ends, 2].min() - SOLE
            rows.append([data.time, data.subtree_com[1, 2], sole, *data.qpos[[0, 2]], data.ncon])
    names = ("t", "mass", "sole", "x", "lean", "contacts", "status", "seconds")
    return dict(zip(names, [*np.array(rows).T, *np.array(ticks).T], strict=True))


def flights(run: dict[str, np.ndarray]) -> np.ndarray:
    """Return a row for each flight: its first and last step, rise of mass and of sole, m."""
    in_air = np.pad(run["contacts"] == 0, 1).astype(int)
    spans = np.flatnonzero(np.diff(in_air)).reshape(-1, 2) - [0, 1]
    found = []
    for first, last in spans:
        mass, sole = (run[key][first : last + 1] for key in ("mass", "sole"))
        if run["t"][last] - run["t"][first] > LEAST_FLIGHT:
            found.append([first, last, mass.max() - mass[0], sole.max()])
    return np.reshape(found, (-1, 4))


def main(figure: str | None = None, hops: int = 16) -> dict[float, dict[str, np.ndarray]]:
    """Return the runs, by the mass of the plant over that of the model."""
    spec = find_spec("dm_control")
    if spec is None or spec.origin is None:
        raise SystemExit("this example reads the hopper of dm_control: pip install dm_control")
    path = str(Path(spec.origin).parent / "suite" / "hopper.xml")
    rti, pose = law(mujoco.MjModel.from_xml_path(path))
    runs = {}
    for share in (1.0, 1.1):
        plant = mujoco.MjModel.from_xml_path(path)
        plant.body_mass *= share
        plant.body_inertia *= share
        mujoco.mj_setConst(plant, mujoco.MjData(plant))
        runs[share] = run = hop(rti, pose, plant, hops)
        run["flights"] = found = flights(run)
        rise, sole = 1e3 * found[:, 2:].T
        print(f"{share:.0%} of the mass: {len(found)} flights of more than {LEAST_FLIGHT} s")
        print(
            f"  the mass rises {rise.min():.0f} to {rise.max():.0f} mm, the sole {sole.min():.0f}"
        )
        print(
            f"  it sinks in {-1e3 * run['sole'].min():.0f} mm, ends {1e3 * run['x'][-1]:.0f} mm off"
        )
        print(f"  {np.mean(run['status'] == 0):.1%} of ticks solved")
        print(f"  in {1e3 * np.median(run['seconds']):.0f} ms, in Python")
    if figure is not None:
        draw(figure, drawn(runs), one_legend=True)
    return runs


def drawn(runs: dict[float, dict[str, np.ndarray]]) -> list[Panel]:
    """Return centre of mass, sole and lean."""
    titles = {"mass": "centre of mass, mm", "sole": "lowest point of the sole, mm"}
    titles |= {"lean": "lean of the trunk, mrad"}
    return [
        Panel(title, {f"{share:.0%}": (run["t"], 1e3 * run[key]) for share, run in runs.items()})
        for key, title in titles.items()
    ]


if __name__ == "__main__":
    main(figure_path(__doc__))
