"""A policy learns to balance a pole by commanding inverse dynamics; both become one C.

The law moves the carriage with the acceleration that it is asked for, within the motor's limit,
whatever pole, loops and friction do. A network of 30 weights is asked for that acceleration at
50 Hz. It is trained by an evolution strategy in an environment of Gymnasium whose plant has errors
of 10 % in its masses, drawn anew for each episode; the C of the law runs in it. What it has learned
is then judged as any controller is: heavier, one tick late, pushed.
"""

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP, PostureTask, with_policy
from mbcasadi.environments import ControlledEnv
from mbcasadi.validation import Criteria, Push, ReportOptions, Trial

MODEL = mb.models.path("cart_pole")
PERIOD, TICKS = 0.005, 4  # s, ticks for which an acceleration is held
HIDDEN, LARGEST = 6, 8.0  # units; m/s^2
SCALE = np.array([0.5, 1.0, 0.3, 1.5])  # of carriage and pole, m and rad, m/s and rad/s


def acceleration(weights, x):
    """Return what the network asks for, in units of the largest, from the state (4,)."""
    first, last = np.reshape(weights[: 4 * HIDDEN], (HIDDEN, 4)), weights[4 * HIDDEN :]
    return ca.tanh(ca.dot(ca.DM(last), ca.tanh(ca.mtimes(ca.DM(first), x / ca.DM(SCALE)))))


def episode(env, weights, seed):
    """Return the sum of rewards: how upright the pole is, and how near the carriage."""
    (x, _), total, ended = env.reset(seed=seed), 0.0, False
    while not ended:
        action = np.array(acceleration(weights, x)).ravel()
        x, reward, fell, late, _ = env.step(action)
        total, ended = total + reward, fell or late
    return total


def learned(env, generations=30, pairs=8, step=0.3, rate=0.3):
    """Return weights by an evolution strategy: finite differences in random directions."""
    rng = np.random.default_rng(0)
    weights = 0.5 * rng.normal(size=5 * HIDDEN)  # at zero the network is even in its weights
    for generation in range(generations):
        tried = rng.normal(size=(pairs, weights.size))
        ends = [[episode(env, weights + s * step * d, generation) for s in (1, -1)] for d in tried]
        gain = np.subtract(*np.transpose(ends))
        weights = weights + rate * gain @ tried / (pairs * (np.std(ends) + 1e-9))
        if generation % 5 == 4:
            print(f"generation {generation + 1}: mean reward {np.mean(ends):.1f}")
    return weights


def main(generations=30):
    """Train, join policy and law, and validate their C."""
    system = mb.read_mjcf(MODEL)
    law = InverseDynamicsQP(system, [PostureTask(("carriage",), kp=0.01)], period=PERIOD)
    pole = system.nq - 1
    places = [0, pole, system.nq, system.nq + pole]
    trial = Trial(3.0, reference=np.zeros(3), q0=np.zeros(system.nq), delay=1)
    env = ControlledEnv(
        MODEL, law, trial, {"posture.a": (-LARGEST, LARGEST)}, ticks=TICKS,
        observe=lambda step: np.concatenate([step.data.qpos, step.data.qvel])[places],
        reward=lambda step: 1 - 10 * step.data.qpos[pole] ** 2 - 5 * step.data.qpos[0] ** 2,
        terminate=lambda step: abs(step.data.qpos[pole]) > 0.5 or abs(step.data.qpos[0]) > 0.5,
        start_error=0.05, perturb={"mass": (-0.1, 0.1)},
    )  # fmt: skip
    weights = learned(env, generations)
    env.close()
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    given = ca.vertcat(0, 0, LARGEST * acceleration(weights, ca.vertcat(q, v)[places]))
    whole = with_policy(
        law, ca.Function("net", [q, v], [given], ["q", "v"], ["law_ref"]), every=TICKS
    )
    push = Push("pole", [0.5, 0.0, 0.0], 2.0, 2.1)
    report = mb.validate(
        whole, MODEL, 6.0, q0=np.eye(system.nq)[pole] * 0.1, delay=1, perturb={"mass": 0.1},
        disturbance=push, criteria=Criteria({"status.safe_output": 0}),
        report=ReportOptions(explain=False),
    )  # fmt: skip
    lean = np.abs(report.runs[0].recording.q[:, pole])
    print(f"pole: {lean.max():.2f} rad at most, {lean[-1]:.3f} rad at the end")
    return {"report": report, "lean": lean, "whole": whole}


if __name__ == "__main__":
    main()
