"""A quadruped trots, is pushed, turns and walks: MPC above inverse dynamics.

Every 30 ms an MPC of the robot as one rigid body computes the feet's forces. Every 2 ms the inverse
dynamics QP tracks them with all 18 freedoms. Between them a planner gives gait, footholds and
swings. Both run as C, one tick late; MuJoCo's robot is 10 % heavier, and is pushed sideways.

You will see height, attitude and yaw of the trunk, and the loads of the feet.
"""

import sys

import numpy as np
from scipy.spatial.transform import Rotation

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.control import FrameTask, InverseDynamicsQP
from mbcasadi.plots import save_figure
from mbcasadi.validation import ScenarioOptions, outer_law

MODEL = models.path("quadruped")
STATE = [50.0, 50, 50, 100, 100, 300, 0.2, 0.2, 0.5, 2, 2, 2]  # weights of rpy, p, ω, v
FEET, MU, FORCE = ("FL", "FR", "RL", "RR"), 0.6, 1e-5  # friction; weight, 1/N²
STIFF, DAMPED = [0, 0, 200, 200, 200, 20], [5, 5, 28, 28, 28, 10]  # of the trunk, 1/s², 1/s
SLOW, FAST, HORIZON, TURN, SPEED = 0.03, 0.002, 10, 0.4, 0.3  # s, s, samples, rad/s, m/s
STARTS, TURNS, WALKS, DURATION = 0.3, 3.4, 5.4, 6.9  # s
PUSH, PUSHED = 60.0, (2.0, 2.1)  # N on the trunk; s


def controllers() -> tuple[InverseDynamicsQP, object, object]:
    """Return inverse dynamics, MPC, and the planner between them."""
    system = mb.read_mjcf(MODEL)
    stand = system.tree.keyframes["stand"]
    feet = [mb.Contact(name, friction=MU, sides=4) for name in FEET]
    body = mpc.single_rigid_body(system, feet, stand)
    slow = mpc.single_rigid_body_mpc(body, HORIZON, STATE, FORCE, period=SLOW)
    tasks = [FrameTask("trunk", kind="body", kp=STIFF, kd=DAMPED)]
    tasks += [FrameTask(name, orientation="", kp=400.0) for name in FEET]
    options = {"force_weight": 1e-3, "force_reference": True, "contact_damping": 20.0}
    law = InverseDynamicsQP(system, tasks, feet, period=FAST, **options)
    return law, slow, mpc.walking_planner(law, slow, mpc.trot(0.48, duty=0.55, start=STARTS), stand)


def main(figure: str | None = None) -> dict[str, object]:
    """Return recording, the outer law's record, and figures."""
    law, slow, guide = controllers()
    plant = {"perturb": {"mass": 0.1}, "delay": 1, "q0": law.system.tree.keyframes["stand"]}
    plant["disturbance"] = lambda t: PUSH * (PUSHED[0] <= t < PUSHED[1]) * np.eye(18)[1]

    def command(t: float) -> list[float]:
        return [SPEED * (t >= WALKS), 0.0, TURN * (TURNS <= t < WALKS)]  # along x, y; about z

    with outer_law(slow, guide, command) as outer:
        run = mb.validate(
            law, MODEL, DURATION, scenario=ScenarioOptions(outer=outer), **plant
        ).runs[0]
        slow_tick = 1e6 * outer.times().median
    r, status = run.recording, np.array(outer.record["status"])
    t, height = r.t, 1e3 * (r.q[:, 2] - r.q[0, 2])
    yaw, pitch, roll = np.unwrap(Rotation.from_quat(r.q[:, [4, 5, 6, 3]]).as_euler("ZYX").T)
    rate, walking = np.gradient(yaw, t)[(t > TURNS + 0.3) & (t < WALKS)], t > WALKS + 0.5
    loaded = (r.mask > 0.5) & (r.contact_normal > 5.0)
    rms = np.sqrt(np.mean(np.array([height, 1e3 * pitch, 1e3 * roll]) ** 2, axis=1))
    said = dict(zip(("height", "pitch", "roll"), rms, strict=True))
    said |= {"turn": rate.mean(), "slip": 1e3 * run.metric("contact.slip")}
    said["off"] = np.linalg.norm(rate - TURN) / np.sqrt(rate.size)
    said["held"] = (r.contact_tangential[loaded] <= MU * r.contact_normal[loaded]).mean()
    said["speed"] = np.linalg.norm(np.ptp(r.q[walking, :2], axis=0)) / np.ptp(t[walking])
    print("height {height:.1f} mm, roll {roll:.1f}, pitch {pitch:.1f} mrad RMS".format(**said))
    print("turns {turn:.3f} rad/s, off by {off:.3f} RMS; walks {speed:.2f} m/s".format(**said))
    print("feet slip {slip:.0f} mm at most; {held:.1%} of loads inside the cone".format(**said))
    print(f"fast: {run.in_words}")
    print(f"slow: {100 * np.mean(status == 0):.3g} % solved; {slow_tick:.0f} µs of 30 ms a tick")
    if figure is not None:
        save_figure(figure, {"height, mm": {"trunk": (t, height)}, "yaw": {"trunk": (t, yaw)}})
    return {"found": r, "mpc": outer.record, "said": said}


if __name__ == "__main__":
    main(*sys.argv[1:])
