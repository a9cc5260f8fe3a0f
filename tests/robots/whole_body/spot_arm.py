"""Spot trots and draws a circle with its hand, by MPC of the whole body; with a pull on the hand.

Generated C in MuJoCo: mass +10 %, controls one tick late, plans one plan late, stock servos. The
circle is in the world, ahead of a robot that walks. The pull is not known to the controllers.

cd tests && python -m robots.whole_body.spot_arm [--models FOLDER] [--sensors]
"""

import argparse
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.control import DisturbanceObserver, FrameTask
from mbcasadi.mpc.whole_body.defaults import default_law
from mbcasadi.mpc.whole_body.whole_body_mpc import TICKS
from mbcasadi.plant.contact_share import contact_step
from mbcasadi.plant.contacts import find_frame
from mbcasadi.validation import (
    Push,
    Recording,
    ReportOptions,
    ScenarioOptions,
    compile_controller,
    outer_law,
)
from robots import models, trots
from robots.ground import Array
from robots.whole_body.sensed import ESTIMATE_HEADS, REST, estimate_cells, sensing_below

HORIZON, PERIOD, DURATION = 20, 0.02, 10.0  # samples, s, s
GAIT = mpc.trot(0.5, duty=0.6, start=0.4)
SPEED, FROM, FULL = 0.3, 0.5, 2.0  # m/s, and when the robot walks off and is as fast, s
RADIUS, TURN, OUT = 0.1, 4.0, 2.0  # m, s of a circle, s in which its radius grows
PULL, PULLS = 30.0, 3.0  # N backwards on the hand, from when on, s
ARM = [0.0, -1.6, 1.8, 0.0, -0.2, 0.0, -0.5]  # rad, the hand ahead of the robot
LEARNING = 10.0  # 1/s, of the force that the model lacks: a pull turns with the arm in joints
TIP = [0.2, 0.0, 0.0]  # m, of the hand in its last link
HAND = "arm_link_wr1"
FALLEN = 0.6  # of the height at the start


def speed(t: float) -> float:
    """Return the speed ahead, m/s."""
    return float(SPEED * np.clip((t - FROM) / (FULL - FROM), 0, 1))


def way(t: float) -> float:
    """Return the way of the robot, m."""
    ramp = np.clip(t - FROM, 0, FULL - FROM)
    return float(SPEED * (ramp**2 / (2 * (FULL - FROM)) + max(t - FULL, 0)))


def circle(start: Array, t: float) -> Mapping[str, Array]:
    """Return place and velocity of the hand, a circle across the way around its first place."""
    share, rate = np.clip((t - FULL) / OUT, 0, 1), 2 * np.pi / TURN
    radius = RADIUS * share**2 * (3 - 2 * share)
    grows = 6 * RADIUS * share * (1 - share) / OUT
    c, s = np.cos(rate * (t - FULL)), np.sin(rate * (t - FULL))
    place = start + np.array([way(t), radius * c, radius * s])
    velocity = [speed(t), grows * c - rate * radius * s, grows * s + rate * radius * c]
    return {"position": place, "velocity": np.array(velocity)}


def figures(recording: Recording, system: mb.System, start: Array, begins: float) -> str:
    """Return speed, error of the hand and the largest lean from when it is at full speed on."""
    t, q = recording.t[::5] - begins, recording.q[::5]
    if recording.events or q[:, 2].min() < FALLEN * q[0, 2]:
        return f"fell after {t[-1]:.1f} s | | |"
    full, frame = t > FULL, system.frame("hand")
    places = np.array([np.array(frame.pose(each)[0]).ravel() for each in q[full]])
    wanted = np.array([circle(start, time)["position"] for time in t[full]])
    errors = 1e3 * np.linalg.norm(places - wanted, axis=1)
    ahead = (q[-1, 0] - q[full][0, 0]) / (t[-1] - t[full][0])
    lean = 2e3 * np.abs(q[:, 4:6]).max()
    return f"{ahead:.3f} | {errors.max():.1f} | {np.sqrt(np.mean(errors**2)):.1f} | {lean:.0f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="robots.whole_body.spot_arm", description=__doc__)
    parser.add_argument("--sensors", action="store_true", help="an estimator gives q and v")
    models.add_argument(parser)
    sensed = parser.parse_args().sensors
    begins = REST if sensed else 0.0
    spec, q0 = trots.model_on_floor("Spot with arm")
    spec.body(HAND).add_site(name="hand", pos=TIP)
    q0[-len(ARM) :] = ARM
    model = spec.compile()
    places = [find_frame(model, f"foot{k}", "site") for k in range(4)]
    spec.option.timestep = contact_step(model, q0, places)
    system = mb.read_mjcf(spec)
    feet = [mb.Contact(f"foot{k}", friction=0.6, sides=4) for k in range(4)]
    tasks = [FrameTask("hand", orientation="")]
    law = default_law(system, feet, PERIOD / TICKS, 1.0, None, (), tasks)
    law = replace(law, observer=DisturbanceObserver(LEARNING))
    gait = replace(GAIT, start=GAIT.start + begins)
    whole = mpc.whole_body_mpc(
        system, HORIZON, PERIOD, feet, gait=gait, q0=q0, tasks=tasks, law=law
    )
    sensors = sensing_below(law, spec, q0) if sensed else None
    start = np.array(system.frame("hand").pose(q0)[0]).ravel()

    def command(t: float) -> Array:
        walk = [speed(t - begins), 0.0, 0.0]
        hand = {"hand": lambda time: circle(start, time - begins)}
        return mpc.task_command(whole, t, walk, hand)

    heads = ["robot", "task", "m/s", "hand, mm: largest", "rms", "leans, mrad", "plans solved"]
    heads += ESTIMATE_HEADS * sensed
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    with compile_controller(law) as below, outer_law(whole.plan, whole, command) as outer:
        for pull in (0.0, PULL):
            pushes = (
                [Push(HAND, [-pull, 0, 0], begins + PULLS, begins + DURATION)] if pull else None
            )
            report = mb.validate(
                below, spec, begins + DURATION, q0=q0, perturb={"mass": 0.1}, delay=1,
                disturbance=pushes, sensors=sensors, scenario=ScenarioOptions(outer=outer),
                report=ReportOptions(explain=False),
            )  # fmt: skip
            found = report.runs[0].recording
            row = figures(found, system, start, begins)
            solved = np.mean(np.ravel(outer.record["status"]) <= 1)
            task = f"circle, pulled by {pull:.0f} N" if pull else "circle"
            estimate = f" | {estimate_cells(found, spec.compile())}" if sensed else ""
            print(f"| Spot with arm | {task} | {row} | {solved:.1%}{estimate} |", flush=True)


if __name__ == "__main__":
    main()
