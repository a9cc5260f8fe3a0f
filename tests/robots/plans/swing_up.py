"""A cart-pole on redundant rows and an acrobot swing up, by one real-time iteration each.

The cart-pole is that of example 29, whose cart is two bodies on two bolts: six rows of rank three.
It is pushed and knocked over. The acrobot is that of dm_control with a motor of 30 N m in place of
2 N m: its plan of 10 s with 2 N m turns its elbow at 17 rad/s, and nothing follows that on a plant
that is 10 % heavier. Its steps are halved where they lead away, and it learns slowly: the force
that a heavier link lacks changes its sign within a swing, and is not constant over 3 s. It runs
with several masses. Beside them is inverse dynamics that holds the upright pose.
"""

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec

import casadi as ca
import mujoco
import numpy as np
from support.examples import example

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.control import DisturbanceObserver, InverseDynamicsQP, PostureTask
from mbcasadi.control.law_interface.control_law import ControlLaw
from mbcasadi.control.regulators import lqr_gain
from mbcasadi.validation import Recording, Runnable, compile_controller
from robots.arms.row import Figure

PERIOD, DELAY, MASS, BANDWIDTH = 0.02, 1, 0.1, 20.0  # s, ticks, share, 1/s
STANDS = 0.1  # rad of lean
CART, KNOCKS, DURATION = example(29), (3.0, -3.0), 11.0  # N m, s
TORQUE, SPARED, ACROBOT_HORIZON, ACROBOT_TIME = 30.0, 0.4, 150, 14.0  # N m, share, samples, s
HALVINGS, SWING_BANDWIDTH, MASSES = 5, 5.0, (0.0, 0.05, 0.1, 0.15)  # 1/s, shares, of the acrobot
EFFORT, ANGLES, RATES = 3.0, 1.0, 1.0  # roots of weights per second, of the acrobot
INVERSE_DYNAMICS_KP = 25.0  # 1/s²


def iteration(
    system: mb.System,
    horizon: int,
    parts: list,
    start: np.ndarray,
    at: mpc.StageSymbols,
    plan: list,
    bandwidth: float = BANDWIDTH,
    halvings: int = 0,
) -> mpc.RealTimeIteration:
    """Return the iteration that begins with the optimal swing from rest.

    Args:
        system, horizon, parts, at: of the problem.
        start: q, which hangs.
        plan: further parts of the first guess.
        bandwidth, halvings: of the observer, 1/s, and of the steps.
    """
    options = {"symbols": at, "step": mpc.SemiImplicitStep()}
    problem = partial(mpc.optimal_control_problem, system, horizon, PERIOD, **options)
    hanging = np.concatenate([start, np.zeros(system.nv)])
    first, ocp = problem([*parts, *plan]), problem([*parts, mpc.Disturbance()])
    straight = np.linspace(hanging, 0 * hanging, horizon + 1)
    guess = mpc.initial_guess(first, straight, np.zeros((horizon, system.nu)))
    best = mpc.ocp_solver(first, "ipopt").solve(hanging, guess=guess)
    return mpc.real_time_iteration(
        ocp,
        best,
        delay=DELAY,
        pending=np.zeros((DELAY, system.nu)),
        solver="stagewise",
        observer=DisturbanceObserver(bandwidth=bandwidth),
        line_search=halvings,
    )


def cart_pole() -> tuple[mb.System, object, np.ndarray, mpc.RealTimeIteration]:
    """Return the cart-pole, its model, the hanging pose, and the iteration of example 29."""
    system, force = mb.read_mjcf(CART["MODEL"]), CART["FORCE"]
    at = mpc.stage_symbols(system)
    residual = ca.vertcat(CART["upright"](at, CART["ROOTS"]), CART["EFFORT"] * at.u)
    cost = mpc.Cost(residual=residual, terminal=CART["upright"](at, CART["LAST"]))
    parts, start = [cost, mpc.StageBounds(u=[[-force, force]])], np.pi * np.eye(5)[CART["POLE"]]
    return system, CART["MODEL"], start, iteration(system, CART["HORIZON"], parts, start, at, [])


def acrobot_model() -> mujoco.MjModel:
    """Return the acrobot of dm_control with a stronger motor.

    Raises:
        SystemExit: dm_control is not installed.
    """
    spec = find_spec("dm_control")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the acrobot is that of dm_control: pip install dm_control")
    model = mujoco.MjSpec.from_file(spec.submodule_search_locations[0] + "/suite/acrobot.xml")
    model.actuators[0].gear = [TORQUE, 0, 0, 0, 0, 0]
    model.option.timestep = 0.005
    return model.compile()


def acrobot() -> tuple[mb.System, object, np.ndarray, mpc.RealTimeIteration]:
    """Return the acrobot, its model, the hanging pose, and an iteration.

    Its end costs what LQR costs about the upright pose, of the sines of the links' angles, and as
    much of their `1 - cos`, so that no turn counts.
    """
    model = acrobot_model()
    system = mb.read_mjcf(model)
    at = mpc.stage_symbols(system)
    first, second = at.q[0], at.q[0] + at.q[1]
    links = np.array([[1.0, 0.0], [1.0, 1.0]])
    Q = np.zeros((4, 4))
    Q[:2, :2], Q[2:, 2:] = ANGLES**2 * links.T @ links, RATES**2 * np.eye(2)
    linear = mb.linearize(system, mb.equilibrium(system, [0.0, 0.0]))
    to_x = np.linalg.inv(np.vstack([linear.to_dq, linear.to_dv]))
    S = to_x.T @ lqr_gain(linear, Q=Q, R=[[EFFORT**2]]).S @ to_x
    root, most = np.linalg.cholesky((S + S.T) / 2).T, np.sqrt(np.diag(S)[:2].max())
    leans = ca.vertcat(ca.sin(first), ca.sin(second), 1 - ca.cos(first), 1 - ca.cos(second))
    end = ca.DM(root) @ ca.vertcat(leans[0], leans[1] - leans[0], at.v)
    cost = mpc.Cost(
        residual=ca.vertcat(ANGLES * leans, RATES * at.v, EFFORT * at.u),
        terminal=ca.vertcat(end, most * leans[2:]),
    )
    start, most_u = np.array([np.pi, 0.0]), 1 - SPARED
    plan = [mpc.StageBounds(u=[[-most_u, most_u]])]
    slow = SWING_BANDWIDTH, HALVINGS
    return system, model, start, iteration(system, ACROBOT_HORIZON, [cost], start, at, plan, *slow)


def cart_lean(q: np.ndarray) -> np.ndarray:
    """Return the lean of the pole, rad."""
    return (q[:, CART["POLE"]] + np.pi) % (2 * np.pi) - np.pi


def acrobot_lean(q: np.ndarray) -> np.ndarray:
    """Return the larger lean of both links, rad."""
    angles = np.cumsum(q, axis=1)
    return np.abs((angles + np.pi) % (2 * np.pi) - np.pi).max(axis=1)


def stands_after(t: np.ndarray, lean: np.ndarray, until: float) -> float:
    """Return the time after which it leans less than `STANDS` until a time; infinite if never."""
    before = t < until
    leans = np.flatnonzero(np.abs(lean[before]) > STANDS)
    return float(t[leans[-1]] + PERIOD) if leans[-1] + 1 < before.sum() else np.inf


def run(
    law: ControlLaw | Runnable,
    model: object,
    start: np.ndarray,
    duration: float,
    reference: object,
    push=None,
    mass: float = MASS,
) -> tuple[Recording, object]:
    """Return the recording, and the times of the ticks of the generated C in MuJoCo."""
    done = mb.validate(
        law,
        model,
        duration,
        q0=start,
        reference=reference,
        delay=DELAY,
        perturb={"mass": mass} if mass else None,
        disturbance=push,
    ).runs[0]
    return done.recording, done.times


def _without_plan(
    system: mb.System, model: object, start: np.ndarray, duration: float, lean: Callable
) -> float:
    """Return the time after which inverse dynamics towards the upright pose stands."""
    law = InverseDynamicsQP(
        system, [PostureTask(kp=INVERSE_DYNAMICS_KP)], period=PERIOD, delay=DELAY
    )
    upright = law.reference_at(np.zeros(system.nq))
    recording, _ = run(law, model, start, duration, upright)
    return stands_after(recording.t, lean(recording.q), duration)


def figures() -> Iterator[Figure]:
    """Yield the figures."""
    words, title = "mass +10 %, 1 tick late", "stands after"
    system, model, start, rti = cart_pole()
    name, hit = "cart-pole on six rows of rank 3", CART["KNOCKED"]
    for knock in KNOCKS:
        push = partial(CART["push"], knock)
        recording, times = run(rti, model, start, DURATION, rti.nominal_reference, push)
        t, lean = recording.t, cart_lean(recording.q)
        yield Figure(name, words, title, stands_after(t, lean, CART["PUSHED"]), 3.0, "s")
        after = stands_after(t, lean, DURATION) - hit
        yield Figure(name, f"knocked by {knock:+g} N m", f"{title} the knock", after, 5.0, "s")
        bad = 100 * np.mean(recording.status > 1)
        yield Figure(name, f"knocked by {knock:+g} N m", "ticks without a solution", bad, None, "%")
    yield Figure(name, words, "tick", 1e6 * times.median, None, "µs")
    alone = _without_plan(system, model, start, CART["PUSHED"], cart_lean)
    yield Figure(name, words, f"inverse dynamics: {title}", alone, None, "s")
    system, model, start, rti = acrobot()
    name, reference = f"acrobot with {TORQUE:g} N m", rti.nominal_reference
    with compile_controller(rti) as law:
        for mass in MASSES:
            which = f"mass +{mass:.0%}, 1 tick late"
            recording, times = run(law, model, start, ACROBOT_TIME, reference, mass=mass)
            after = stands_after(recording.t, acrobot_lean(recording.q), ACROBOT_TIME)
            yield Figure(name, which, title, after, ACROBOT_TIME - 2.0, "s")
            bad = 100 * np.mean(recording.status > 1)
            yield Figure(name, which, "ticks without a solution", bad, None, "%")
    yield Figure(name, words, "tick", 1e6 * times.median, None, "µs")
    alone = _without_plan(system, model, start, ACROBOT_TIME, acrobot_lean)
    yield Figure(name, words, f"inverse dynamics: {title}", alone, None, "s")
