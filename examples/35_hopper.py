"""The hopper of dm_control hops sixteen times from a schedule of its contacts.

Nobody plans a hop here: the reference is one crouched pose at rest, and a mask says when toe and
heel are on the floor. Every 25 ms a real-time iteration plans the next 0.6 s, with the loads of the
foot inside its friction cone, so that the foot leaves the floor and is back on time. MuJoCo's floor
is elastic: the foot sinks in. The second plant is 10 % heavier than the model.

You will see the flights, times without a force of the floor, and the lowest point of the sole.
"""

import sys
from importlib.util import find_spec

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.plots import curves_of, save_figure
from mbcasadi.validation import ReportOptions

SOLE, FRICTION = 0.04, 0.6  # m, radius of the foot; 1.0 in the plant
PERIOD, HORIZON, STEP = 0.025, 24, mpc.StepOptions(order=2, newton=1)  # s, samples
STANDS, FLIES, LANDED = 8, 10, 14  # samples before the first flight, in one and after one
POSE = np.array([0, 0, 0, 0, -0.8, 1.6, -0.8])  # rad: waist, hip, knee, ankle, crouched
ALONG = np.r_[5, 5, 20, np.ones(4), 0.5, 0.1, 0.1, np.full(4, 0.02)]  # weights of x, z, pitch, ...
AT_END = np.r_[30, 50, 200, np.ones(4), 10, 2, 10, np.full(4, 0.05)]


def controller(free: mb.System, height: ca.Function) -> mpc.RealTimeIteration:
    """Return the iteration on the model with three rows, two heights and a slip."""
    q, v = ca.SX.sym("q", 7), ca.SX.sym("v", 7)
    slip = ca.jtimes(free.frame("touch_toe").pose(q)[0][0], q, v)
    system = free.with_rows(q, v, phi=height(q)).with_rows(q, v, psi=slip).with_mask()
    at = mpc.stage_symbols(system)
    motors = system.actuation(at.q) @ at.u
    load = mb.forward_dynamics(system)(q=at.q, v=at.v, f=motors, mask=at.mask)["lam"]
    grip = FRICTION * (load[0] + load[1])
    cone = ca.vertcat(load[:2], grip - load[2], grip + load[2]) / 100.0
    cost, feet = mpc.Cost(Q=ALONG, R=0.3, Q_end=AT_END), {"phi0": 1, "phi1": 1}
    parts = [cost, mpc.Bounded(cone, -1e-3, name="cone"), mpc.ContactSchedule(not_below=feet)]
    ocp = mpc.optimal_control_problem(system, HORIZON, PERIOD, parts, symbols=at, step=STEP)
    guess = np.tile(np.r_[POSE, np.zeros(7)], (HORIZON + 1, 1)), np.zeros((HORIZON, 4))
    return mpc.real_time_iteration(ocp, mpc.initial_guess(ocp, *guess))


def main(figure: str | None = None, hops: int = 16) -> dict[str, dict[str, np.ndarray]]:
    """Return the runs, by the mass of the plant over that of the model."""
    spec, runs = find_spec("dm_control"), {}
    if spec is None:
        raise SystemExit("this example reads the hopper of dm_control: pip install dm_control")
    model = spec.submodule_search_locations[0] + "/suite/hopper.xml"
    system, q = mb.read_mjcf(model), ca.SX.sym("q", 7)
    toe, heel = (system.frame(name).pose(q)[0][2] for name in ("touch_toe", "touch_heel"))
    height = ca.Function("height", [q], [ca.vertcat(toe, heel) - SOLE])
    POSE[1] = -float(height(POSE)[0])
    rti = controller(system, height)

    def ahead(t: float) -> np.ndarray:
        k = round(t / PERIOD) - STANDS + np.arange(HORIZON + 1)
        on = (k < 0) | (k % (FLIES + LANDED) >= FLIES)
        return rti.ocp.parameters(mask=np.repeat(on[:, None], 3, axis=1), setpoint_q=POSE).ravel()

    options = {"q0": POSE, "reference": ahead, "fast": True, "report": ReportOptions(explain=False)}
    duration = PERIOD * (STANDS + hops * (FLIES + LANDED))
    for error in (0.0, 0.1):
        run = mb.validate(rti, model, duration, perturb={"mass": error}, **options).runs[0]
        t, q, in_air = run.recording.t, run.recording.q, run.recording.other_force[:, 1] == 0
        sole = 1e3 * np.min(height.map(len(t))(q.T).full(), axis=0)
        runs[f"{1 + error:.0%}"] = {"t": t, "q": q, "sole": sole, "in_air": in_air, "run": run}
        starts = np.count_nonzero(np.diff(in_air.astype(int)) == 1)
        print(f"{1 + error:.0%} of the mass: {starts} flights; {run.in_words}")
        print(f"  the sole rises {sole.max():.0f} mm and sinks in {-sole.min():.0f} mm")
    if figure is not None:
        save_figure(figure, curves_of(runs, {"lowest point of the sole, mm": "sole"}))
    return runs


if __name__ == "__main__":
    main(*sys.argv[1:])
