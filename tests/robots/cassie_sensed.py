"""Cassie stands and squats by what its IMU and encoders measure; its springs without encoders.

cd tests && python -m robots.cassie_sensed

The law gets the state from an IMU and the encoders that the robot has: motors, shins, tarsi and
feet; rods and heel springs follow by the loops. Beside it a second estimator has no encoders of the
shins either: their springs are passive joints.
"""

import argparse

import numpy as np

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP
from mbcasadi.estimation import (
    Encoders,
    Estimator,
    Imu,
    PassiveJoint,
    base_estimator,
    encoder_noise,
)
from mbcasadi.validation import Recording, ReportOptions, Sensing, compile_controller
from robots import cassie, models
from robots.ground import Array
from robots.whole_body.sensed import BITS, ERRORS, RATE_NOISE

RODS = ("achilles-rod", "heel-spring", "foot-crank", "plantar-rod")
SHINS = ("left-shin", "right-shin")
BENT, RATE, REST = 0.05, 10.0, -0.03  # rad, rad/s, rad: of shins under the robot's weight
DURATION, SETTLE = 6.0, 0.5  # s


def estimator_of(law: InverseDynamicsQP, q0: Array, unread: tuple[str, ...] = ()) -> Estimator:
    """Return the estimator of Cassie, some of whose joints have no encoder."""
    names = [joint.name for joint in law.system.tree.joints[1:]]
    read = [n for n in names if not n.endswith(RODS) and n not in unread]
    return base_estimator(
        law.system, law.contacts, imu=Imu("imu"), q0=q0, period=law.period,
        encoders=Encoders(tuple(read), noise=encoder_noise(BITS), rate_noise=RATE_NOISE),
        passive=[PassiveJoint(name, BENT, RATE, REST) for name in unread],
    )  # fmt: skip


def without_shins(law: InverseDynamicsQP, q0: Array, found: Recording) -> tuple[Array, Array]:
    """Return errors and deviations (ticks, 16) of base and shins where these are not measured."""
    own, other = estimator_of(law, q0), estimator_of(law, q0, SHINS)
    kept = {(s.kind, s.target) for s in other.sensors}
    rows = [k for s in own.sensors if (s.kind, s.target) in kept for k in s.rows]
    z, errors, deviations = other.z0, [], []
    for y, mask, q, v in zip(
        found.monitor["estimate_y"], found.monitor["estimate_mask"], found.q, found.v, strict=True
    ):
        out = other.function(y=y[rows], valid=1, mask=mask, dt=law.period, z=z)
        z, gap = out["z_next"], np.array(law.system.difference(q, out["q"])).ravel()
        both = np.append(gap, np.array(out["v"]).ravel() - v)
        errors.append(both[list(other.covered)])
        deviations.append(np.sqrt(np.diag(np.array(out["covariance"]))))
    return np.array(errors), np.array(deviations)


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
    with compile_controller(law) as compiled:
        for task, reference in (("stands", lambda _t: squat(0.0)), ("squats", squat)):
            report = mb.validate(
                compiled, model, DURATION, reference=reference, q0=q0, perturb={"mass": 0.1},
                delay=1, sensors=Sensing(estimator_of(law, q0), ERRORS),
                report=ReportOptions(explain=False, timing=False),
            )  # fmt: skip
            found, first = report.runs[0].recording, round(SETTLE / law.period)
            own = (found.monitor["estimate_error"], found.monitor["estimate_deviation"])
            fallen = " (fell)" if found.events or found.q[-1, 2] < 0.8 * q0[2] else ""
            lines.append(line(f"{task}{fallen}", *own, first))
            print(lines[-1], flush=True)
            lines.append(line(f"{task}, beside", *without_shins(law, q0, found), first))
            print(lines[-1], flush=True)
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="robots.cassie_sensed", description=__doc__)
    models.add_argument(parser)
    parser.parse_args()
    main()
