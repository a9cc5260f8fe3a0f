"""The hopper of dm_control hops twenty times, and is pushed, by a real-time iteration of all of it.

As example 35 it is given one crouched pose at rest and a schedule of its contacts, heights of toe
and heel and the slip of the toe; here with semi-implicit steps, whose multipliers are the forces,
and controls that act one tick late. No force is learned: impacts on the plant's floor would
teach it.
"""

from collections.abc import Iterator
from importlib.util import find_spec

import casadi as ca
import numpy as np
from support.examples import example

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.validation import Push
from robots.arms.row import Figure

OLD = example(35)
PERIOD, HORIZON, DELAY, MASS = OLD["PERIOD"], OLD["HORIZON"], 1, 0.1
STANDS, FLIES, LANDED = OLD["STANDS"], OLD["FLIES"], OLD["LANDED"]
HOPS, LEAST = 20, 0.1  # s, of a flight that counts
CLOSING, PRICE = 0.1, 0.1  # m from which a row may close; of a force outside its cone, per 100 N
PUSHES = [Push("torso", (force, 0.0, 0.0), t, t + 0.1) for force, t in ((30.0, 4.0), (-30.0, 8.0))]
KP = 100.0  # 1/s², of inverse dynamics


def controller(free: mb.System, height: ca.Function, pose: np.ndarray) -> mpc.RealTimeIteration:
    """Return the iteration on the model with three rows, two heights and a slip."""
    q, v = ca.SX.sym("q", 7), ca.SX.sym("v", 7)
    slip = ca.jtimes(free.frame("touch_toe").pose(q)[0][0], q, v)
    system = free.with_rows(q, v, phi=height(q)).with_rows(q, v, psi=slip).with_mask()
    at = mpc.stage_symbols(system)
    grip = OLD["FRICTION"] * (at.lam[0] + at.lam[1])
    cone = ca.vertcat(at.lam[:2], grip - at.lam[2], grip + at.lam[2]) / 100.0
    cost = mpc.Cost(Q=OLD["ALONG"], R=0.3, Q_end=OLD["AT_END"])
    cones = mpc.Bounded(cone, -1e-3, linear_penalty=PRICE, name="cone")
    parts = [cost, cones, mpc.ContactSchedule(closing=CLOSING)]
    step = mpc.SemiImplicitStep()
    ocp = mpc.optimal_control_problem(system, HORIZON, PERIOD, parts, symbols=at, step=step)
    X, U = np.tile(np.r_[pose, np.zeros(7)], (HORIZON + 1, 1)), np.zeros((HORIZON, 4))
    guess, pending = mpc.initial_guess(ocp, X, U), np.zeros((DELAY, 4))
    return mpc.real_time_iteration(ocp, guess, delay=DELAY, pending=pending, solver="stagewise")


def hopper() -> tuple[str, mb.System, ca.Function, np.ndarray]:
    """Return its model, the heights of toe and heel, and the crouched pose on the floor.

    Raises:
        SystemExit: dm_control is not installed.
    """
    spec = find_spec("dm_control")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the hopper is that of dm_control: pip install dm_control")
    model = spec.submodule_search_locations[0] + "/suite/hopper.xml"
    system, q, pose = mb.read_mjcf(model), ca.SX.sym("q", 7), OLD["POSE"].copy()
    toe, heel = (system.frame(name).pose(q)[0][2] for name in ("touch_toe", "touch_heel"))
    height = ca.Function("height", [q], [ca.vertcat(toe, heel) - OLD["SOLE"]])
    pose[1] = -float(height(pose)[0])
    return model, system, height, pose


def flights(in_air: np.ndarray, period: float) -> int:
    """Return the number of times without a force of the floor that are long enough to count."""
    ends = np.flatnonzero(np.diff(np.pad(in_air, 1).astype(int)))
    return int(np.count_nonzero((ends[1::2] - ends[::2]) * period >= LEAST))


def figures() -> Iterator[Figure]:
    """Yield the figures."""
    model, system, height, pose = hopper()
    rti = controller(system, height, pose)

    def ahead(t: float) -> np.ndarray:
        k = round(t / PERIOD) + DELAY - STANDS + np.arange(HORIZON + 1)
        on = (k < 0) | (k % (FLIES + LANDED) >= FLIES)
        return rti.reference(mask=np.repeat(on[:, None], 3, axis=1), setpoint_q=pose)

    law = InverseDynamicsQP(system, [PostureTask(kp=KP)], period=PERIOD, delay=DELAY)
    hold, duration = law.reference_at(pose), PERIOD * (STANDS + HOPS * (FLIES + LANDED))
    name = "hopper of dm_control, mass +10 %, 1 tick late"
    for pushes in ([], PUSHES):
        words = "pushed by 30 N for 0.1 s, ahead and back" if pushes else "not pushed"
        scene = {"q0": pose, "delay": DELAY, "perturb": {"mass": MASS}}
        scene["disturbance"] = pushes or None
        run = mb.validate(rti, model, duration, reference=ahead, **scene).runs[0]
        r = run.recording
        missing = HOPS - flights(r.other_force[:, 1] == 0, PERIOD)
        yield Figure(name, words, f"of {HOPS} hops, missing", missing, 0)
        yield Figure(name, words, "largest pitch", np.abs(r.q[:, 2]).max(), None, "rad")
        yield Figure(name, words, "ticks without a solution", np.count_nonzero(r.status), 0)
        yield Figure(name, words, "tick", 1e6 * run.times.median, None, "µs")
    alone = mb.validate(law, model, duration, reference=hold, **scene).runs[0].recording
    hops = flights(alone.other_force[:, 1] == 0, PERIOD)
    yield Figure(name, words, "inverse dynamics in the crouched pose: hops", hops)
    pitch = np.abs(alone.q[:, 2]).max()
    yield Figure(name, words, "inverse dynamics: largest pitch", pitch, None, "rad")
