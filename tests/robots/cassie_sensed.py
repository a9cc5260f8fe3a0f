"""Cassie stands and squats by what its IMU and encoders measure; its springs without encoders.

cd tests && python -m robots.cassie_sensed

The law gets the state from an IMU and the encoders that the robot has: motors, shins, tarsi and
feet; rods and heel springs follow by the loops. Then without encoders of the shins, whose springs
are passive joints. It starts at rest on its springs: an accelerometer that falls onto them shows no
vertical.
"""

import argparse

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP
from mbcasadi.estimation import (
    Encoders,
    Estimator,
    FirstEstimate,
    Imu,
    PassiveJoint,
    base_estimator,
    encoder_noise,
)
from mbcasadi.validation import Recording, ReportOptions, Runnable, Sensing, compile_controller
from robots import cassie, models
from robots.references import Array, Reference
from robots.whole_body.sensed import BITS, ERRORS, RATE_NOISE

RODS = ("achilles-rod", "heel-spring", "foot-crank", "plantar-rod")
SHINS = ("left-shin", "right-shin")
BENT, RATE, REST = 0.05, 10.0, -0.03  # rad, rad/s, rad: of shins under the robot's weight
LEANS = FirstEstimate(tilt=0.1)  # rad, of the first sample: in the first tick no control acts yet
DURATION, SETTLE, RESTS = 6.0, 0.5, 2.0  # s; the last one until it is at rest


def read_joints(system: mb.System, unread: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the joints of Cassie that have encoders."""
    names = [joint.name for joint in system.tree.joints[1:]]
    return tuple(n for n in names if not n.endswith(RODS) and n not in unread)


def estimator_of(law: InverseDynamicsQP, q0: Array, unread: tuple[str, ...] = ()) -> Estimator:
    """Return the estimator of Cassie, some of whose joints have no encoder."""
    joints = read_joints(law.system, unread)
    return base_estimator(
        law.system, law.contacts, imu=Imu("imu"), q0=q0, period=law.period,
        encoders=Encoders(joints, noise=encoder_noise(BITS), rate_noise=RATE_NOISE),
        passive=[PassiveJoint(name, BENT, RATE, REST) for name in unread], start=LEANS,
    )  # fmt: skip


def recorded(
    law: Runnable, model: mujoco.MjSpec, reference: Reference, q0: Array, duration: float,
    sensors: Sensing | None = None,
) -> Recording:  # fmt: skip
    """Return the recording of a run from a pose."""
    report = mb.validate(
        law, model, duration, reference=reference, q0=q0, perturb={"mass": 0.1}, delay=1,
        sensors=sensors, report=ReportOptions(explain=False, timing=False),
    )  # fmt: skip
    return report.runs[0].recording


def at_rest(law: InverseDynamicsQP, compiled: Runnable, model: mujoco.MjSpec, q0: Array) -> Array:
    """Return the pose (nq,) that it has at rest on its springs."""
    still = law.reference_at(q0)
    return recorded(compiled, model, lambda _t: still, q0, RESTS).q[-1]


def line(task: str, errors: Array, deviations: Array, first: int) -> str:
    """Return a line of the table: errors from this tick on."""
    e, s = errors[first:], deviations[first:]
    inside = np.all(np.abs(e) <= 3 * s, axis=1).mean()
    cells = [f"{np.sqrt(np.mean(np.sum(e[:, 6:9] ** 2, axis=1))):.3f}"]
    cells.append(f"{np.rad2deg(np.abs(e[:, 3:5]).max()):.2f}")
    bent = np.sqrt(np.mean(e[:, 12:14] ** 2)) if e.shape[1] > 12 else np.nan
    cells += ["measured" if np.isnan(bent) else f"{1e3 * bent:.0f}", f"{inside:.1%}"]
    return f"| {task} | {' | '.join(cells)} |"


def main() -> list[str]:
    """Print the table and return its lines."""
    law, model, q0 = cassie.standing()
    squat, lines = cassie.squats(law, q0), list[str]()
    print(
        "| Cassie | velocity RMS, m/s | tilt, ° | shins, mrad | inside 3 σ |\n|---|---|---|---|---|"
    )
    still = squat(0.0)
    with compile_controller(law) as compiled:
        rest = at_rest(law, compiled, model, q0)
        for task, reference in (("stands", lambda _t: still), ("squats", squat)):
            for words, unread in (("", ()), (", springs without encoders", SHINS)):
                sensing = Sensing(estimator_of(law, rest, unread), ERRORS)
                found = recorded(compiled, model, reference, rest, DURATION, sensing)
                fallen = " (fell)" if found.events or found.q[-1, 2] < 0.8 * q0[2] else ""
                own = (found.monitor["estimate_error"], found.monitor["estimate_deviation"])
                lines.append(line(f"{task}{words}{fallen}", *own, round(SETTLE / law.period)))
                print(lines[-1], flush=True)
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="robots.cassie_sensed", description=__doc__)
    models.add_argument(parser)
    parser.parse_args()
    main()
