"""A quadruped trots in place, is pushed, turns, and walks: MPC above, inverse dynamics below.

Every 30 ms an MPC of the robot as one rigid body computes the feet's forces over 0.3 s; its output
acts 30 ms late. Every 2 ms the inverse dynamics QP tracks these forces with all 18 freedoms; its
torques act 2 ms late. Between them a planner gives gait, footholds and swings. All three run as
generated C. MuJoCo's robot is 10 % heavier, and is pushed sideways with 60 N for 0.1 s.

You will see height, attitude and yaw of the trunk, and a foot's load beside its commanded one.
"""

import numpy as np
from panels import Panel, draw, figure_path
from scipy.spatial.transform import Rotation

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import FrameTask, InverseDynamicsQP
from mbcasadi.mpc import single_rigid_body, single_rigid_body_mpc, trot, walking_planner
from mbcasadi.validation import ScenarioOptions, outer_law

MODEL = models.path("quadruped")
FEET = ("FL", "FR", "RL", "RR")
STATE = [50.0, 50, 50, 100, 100, 300, 0.2, 0.2, 0.5, 2, 2, 2]  # weights of rpy, p, ω, v
FORCE = 1e-5  # weight, 1/N²
STIFF, DAMPED = [0, 0, 200, 200, 200, 20], [5, 5, 28, 28, 28, 10]  # of the trunk, 1/s², 1/s
MU = 0.6
SLOW, FAST, HORIZON = 0.03, 0.002, 10  # s, s, samples
TURN, SPEED = 0.4, 0.3  # rad/s, m/s
STARTS, TURNS, WALKS, DURATION = 0.3, 3.4, 5.4, 6.9  # s
PUSH, PUSHED = 60.0, (2.0, 2.1)  # N on the trunk; s


def command(t: float) -> np.ndarray:
    """Return the command: speed along the trunk's x and y, and about the vertical."""
    return np.array([SPEED * (t >= WALKS), 0.0, TURN * (TURNS <= t < WALKS)])


def push(t: float) -> np.ndarray:
    """Return the force on the coordinates."""
    return PUSH * (PUSHED[0] <= t < PUSHED[1]) * np.eye(18)[1]


def controllers() -> tuple[object, object, object]:
    """Return inverse dynamics, MPC, and the planner between them."""
    system = mb.read_mjcf(MODEL)
    stand = system.tree.keyframes["stand"]
    feet = [mb.Contact(name, friction=MU, sides=4) for name in FEET]
    body = single_rigid_body(system, feet, stand)
    mpc = single_rigid_body_mpc(body, HORIZON, STATE, FORCE, period=SLOW)
    tasks = [FrameTask("trunk", kind="body", kp=STIFF, kd=DAMPED)]
    tasks += [FrameTask(name, orientation="", kp=400.0) for name in FEET]
    options = {"force_weight": 1e-3, "force_reference": True, "contact_damping": 20.0}
    law = InverseDynamicsQP(system, tasks, feet, period=FAST, **options)
    return law, mpc, walking_planner(law, mpc, trot(0.48, duty=0.55, start=STARTS), stand)


def main(figure: str | None = None) -> dict[str, object]:
    """Return recording, the outer law's record, and figures."""
    law, mpc, guide = controllers()
    stand = law.system.tree.keyframes["stand"]
    plant = {"perturb": {"mass": 0.1}, "delay": 1, "disturbance": push, "q0": stand}
    with outer_law(mpc, guide, command) as outer:
        run = mb.validate(
            law, MODEL, DURATION, scenario=ScenarioOptions(outer=outer), **plant
        ).runs[0]
        slow = outer.times()
    found, status = run.recording, np.array(outer.record["status"])
    t, height = found.t, found.q[:, 2] - stand[2]
    euler = np.unwrap(Rotation.from_quat(found.q[:, [4, 5, 6, 3]]).as_euler("ZYX"), axis=0)
    angle = dict(zip(("yaw", "pitch", "roll"), euler.T, strict=True))
    turning, walking = (t > TURNS + 0.3) & (t < WALKS), t > WALKS + 0.5
    rate = np.gradient(angle["yaw"], t)[turning]
    loaded = (found.mask > 0.5) & (found.contact_normal > 5.0)
    held = found.contact_tangential[loaded] <= MU * found.contact_normal[loaded]
    said = {"height": 1e3 * np.sqrt(np.mean(height**2))}
    said |= {key: 1e3 * np.sqrt(np.mean(angle[key] ** 2)) for key in ("roll", "pitch")}
    said |= {"turn": rate.mean(), "off": np.sqrt(np.mean((rate - TURN) ** 2)), "held": held.mean()}
    said["speed"] = np.linalg.norm(np.ptp(found.q[walking, :2], axis=0)) / np.ptp(t[walking])
    said |= {"fast": (found.status == 0).mean(), "slow": (status == 0).mean()}
    said["slip"] = 1e3 * run.metric("contact.slip")
    said |= {"fast_time": 1e6 * run.metric("time.median"), "slow_time": 1e6 * slow.median}
    print("height {height:.1f} mm, roll {roll:.1f}, pitch {pitch:.1f} mrad RMS".format(**said))
    print("turns {turn:.3f} rad/s, off by {off:.3f} RMS; walks {speed:.2f} m/s".format(**said))
    print("feet slip {slip:.0f} mm at most; {held:.1%} of loads inside the cone".format(**said))
    print("solved: {fast:.1%} of fast ticks, {slow:.1%} of slow ones".format(**said))
    print("medians: fast tick {fast_time:.0f} µs, slow tick {slow_time:.0f} µs".format(**said))
    if figure is not None:
        asked = np.cumsum([FAST * command(one)[2] for one in t])
        load = {
            "measured": (t, found.contact_normal[:, 0]),
            "MPC": (t, found.ref[:, law.reference_slices["force"]][:, 0]),
        }
        yaw = {"measured": (t, angle["yaw"]), "asked": (t, asked)}
        panels = [
            Panel("height off the stand, mm", {"trunk": (t, 1e3 * height)}),
            Panel("attitude, mrad", {key: (t, 1e3 * angle[key]) for key in ("roll", "pitch")}),
            Panel("yaw, rad", yaw, dashed=["asked"]),
            Panel("load of the front left foot, N", load, limits=(0, 200)),
        ]
        draw(figure, panels, columns=2, marks=[PUSHED[0], TURNS, WALKS])
    return {"found": found, "mpc": outer.record, "said": said}


if __name__ == "__main__":
    main(figure_path(__doc__))
