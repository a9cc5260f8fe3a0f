"""A policy learns to balance a pole above inverse dynamics; both are one C.

The law moves the carriage with the acceleration that it is asked for, by a network of 30 weights at
50 Hz. An evolution strategy trains it, for minutes, in an environment of Gymnasium with errors of
mass. You will see the pole of a heavier plant, late and pushed, stay within a few degrees.
"""

import sys

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP, PostureTask, with_policy
from mbcasadi.environments import ControlledEnv
from mbcasadi.plots import save_figure
from mbcasadi.validation import Push, Trial

MODEL = mb.models.path("cart_pole")
PERIOD, TICKS, HIDDEN, LARGEST = 0.005, 4, 6, 8.0  # s, ticks of an action, units, m/s^2
SCALE = [0.5, 1.0, 0.3, 1.5]  # of carriage and pole, m and rad, m/s and rad/s


def acceleration(weights, x):
    """Return what the network asks for, in units of the largest, from the state (4,)."""
    first, last = ca.reshape(weights[: 4 * HIDDEN], HIDDEN, 4), weights[4 * HIDDEN :]
    return ca.tanh(ca.dot(last, ca.tanh(ca.mtimes(first, x / ca.DM(SCALE)))))


def episode(env, weights, seed):
    """Return the sum of rewards: how upright the pole is, and how near the carriage."""
    (x, _), total, ended = env.reset(seed=seed), 0.0, False
    while not ended:
        x, reward, fell, late, _ = env.step([float(acceleration(ca.DM(weights), x))])
        total, ended = total + reward, fell or late
    return total


def learned(env, generations=30, pairs=8, step=0.3, rate=0.3):
    """Return weights by an evolution strategy: finite differences in random directions."""
    rng = np.random.default_rng(0)
    weights = 0.5 * rng.normal(size=5 * HIDDEN)  # at zero the network is even in its weights
    for generation in range(generations):
        tried = rng.normal(size=(pairs, weights.size))
        ends = [[episode(env, weights + s * step * d, generation) for s in (1, -1)] for d in tried]
        gain = np.subtract(*np.transpose(ends)) / (pairs * np.std(ends))
        weights = weights + rate * gain @ tried
        print(f"generation {generation + 1}: mean reward {np.mean(ends):.1f} of 150")
    return weights


def main(figure=None, generations=30):
    """Train, join policy and law, and validate their C."""
    system = mb.read_mjcf(MODEL)
    law = InverseDynamicsQP(system, [PostureTask(("carriage",), kp=0.01)], period=PERIOD)
    nq, pole, places = system.nq, system.nq - 1, [0, system.nq - 1, system.nq, 2 * system.nq - 1]
    trial = Trial(3.0, reference=np.zeros(3), q0=np.zeros(nq), delay=1)
    env = ControlledEnv(
        MODEL, law, trial, {"posture.a": (-LARGEST, LARGEST)}, ticks=TICKS,
        observe=lambda step: np.concatenate([step.data.qpos, step.data.qvel])[places],
        reward=lambda step: 1 - 10 * step.data.qpos[pole] ** 2 - 5 * step.data.qpos[0] ** 2,
        terminate=lambda step: np.abs(step.data.qpos[[0, pole]]).max() > 0.5,
        start_error=0.05, perturb={"mass": (-0.1, 0.1)},
    )  # fmt: skip
    weights = learned(env, generations)
    q, v = (ca.SX.sym(name, nq) for name in "qv")
    asked = LARGEST * acceleration(ca.DM(weights), ca.vertcat(q, v)[places])
    net = ca.Function("net", [q, v], [ca.vertcat(0, 0, asked)], ["q", "v"], ["law_ref"])
    push = {"perturb": {"mass": 0.1}, "disturbance": Push("pole", [0.5, 0.0, 0.0], 2.0, 2.1)}
    start, whole = np.eye(nq)[pole] * 0.1, with_policy(law, net, every=TICKS)
    run = mb.validate(whole, MODEL, 6.0, q0=start, delay=1, **push).runs[0].recording
    lean = run.q[:, pole]
    print(f"pole: {np.abs(lean).max():.2f} rad at most, {lean[-1]:+.3f} rad at the end")
    if figure is not None:
        save_figure(figure, {"learned": {"pole, rad": (run.t, lean)}})
    return {"lean": lean, "whole": whole, "weights": weights}


if __name__ == "__main__":
    main(*sys.argv[1:])
