"""A quadruped trots, is pushed and turns: MPC of all its joints and its forces.

Every 20 ms a real-time iteration plans torques, motion and contact forces of the whole robot over
0.4 s, within torque limits and friction cones; feet lift and land inside the horizon. Every 2 ms
inverse dynamics follows the plan. Both run as C, one tick late; MuJoCo's robot is 10 % heavier,
and is pushed sideways by 1 N s/kg while it trots.

You will see its speed and turn beside the command, its height, and the forces of its feet.
"""

import sys

import numpy as np
from scipy.spatial.transform import Rotation

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.plots import save_figure
from mbcasadi.validation import ReportOptions, ScenarioOptions, outer_law

MODEL, FEET, MU = models.path("quadruped"), ("FL", "FR", "RL", "RR"), 0.6
HORIZON, PERIOD, SPEED, TURN = 20, 0.02, 1.0, 0.5  # samples, s, m/s, rad/s
GAIT = mpc.trot(0.4, duty=0.55, start=0.3)  # feet lift and land at samples
FULL, TURNS, DURATION = 1.8, 4.0, 6.0  # s: at full speed, turning, end
PUSHED, IMPULSE = (2.5, 2.6), 1.0  # s; N s/kg on the trunk, sideways


def command(t: float) -> list[float]:
    """Return the speed ahead and to the left, m/s, and the turn, rad/s, that are commanded."""
    return [SPEED * min(max(t - 0.4, 0.0), 1.0), 0.0, TURN * (t >= TURNS)]


def main(figure: str | None = None) -> dict[str, object]:
    """Return the recording, that of the plans, and figures."""
    system = mb.read_mjcf(MODEL)
    stand = system.tree.keyframes["stand"]
    feet = [mb.Contact(name, friction=MU, sides=4) for name in FEET]
    whole = mpc.whole_body_mpc(system, HORIZON, PERIOD, feet, gait=GAIT, q0=stand)
    mass = sum(body.mass for body in system.tree.bodies)
    force = IMPULSE * mass / (PUSHED[1] - PUSHED[0])
    plant = {
        "perturb": {"mass": 0.1},
        "delay": 1,
        "q0": stand,
        "report": ReportOptions(explain=False),
    }
    plant["disturbance"] = lambda t: force * (PUSHED[0] <= t < PUSHED[1]) * np.eye(18)[1]
    with outer_law(whole.plan, whole, command) as outer:
        above = ScenarioOptions(outer=outer)
        run = mb.validate(whole.law, MODEL, DURATION, scenario=above, **plant).runs[0]
        tick = 1e3 * outer.times().median
    r, status = run.recording, np.array(outer.record["status"])
    turn = Rotation.from_quat(r.q[:, [4, 5, 6, 3]])
    yaw, pitch, roll = np.unwrap(turn.as_euler("ZYX").T)
    ahead = np.einsum("ki,ki->k", turn.apply([1.0, 0.0, 0.0]), r.v[:, :3])
    asked = np.array([command(t) for t in r.t])
    straight, curved = (r.t > FULL) & (r.t < PUSHED[0]), r.t > TURNS + 0.5
    rate = np.gradient(yaw, r.t)
    said = {"speed": ahead[straight].mean(), "curve": ahead[curved].mean()}
    said |= {"turn": rate[curved].mean(), "lean": 1e3 * np.abs([pitch, roll]).max()}
    said["low"] = 1e3 * (r.q[straight, 2].mean() - stand[2])
    print("commanded 1.00 m/s: {speed:.2f} straight on, {curve:.2f} in a curve".format(**said))
    print("commanded 0.50 rad/s: {turn:.2f}; leans by {lean:.0f} mrad at most".format(**said))
    print("the heavier robot trots {low:+.0f} mm from its pose".format(**said))
    print(f"plans: {100 * np.mean(status == 0):.4g} % solved, {tick:.2f} ms of 20 ms each")
    print(f"inverse dynamics: {run.in_words}")
    if figure is not None:
        loads = {name: (r.t, r.contact_normal[:, i]) for i, name in enumerate(FEET)}
        speeds = {"trunk": (r.t, ahead), "command": (r.t, asked[:, 0])}
        turns = {"trunk": (r.t, rate), "command": (r.t, asked[:, 2])}
        panels = {"speed, m/s": speeds, "turn, rad/s": turns, "load, N": loads}
        save_figure(figure, panels)
    return {"found": r, "plans": outer.record, "said": said}


if __name__ == "__main__":
    main(*sys.argv[1:])
