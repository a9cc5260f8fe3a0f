"""A five-bar feels a push from one accelerometer and one force sensor.

Under a force F on its left distal link the sensors of a rigid mechanism read `y = y_0 + G F`, with
y_0 and G from `predicted_readings` at the measured state and torque: two unknown components from
six readings, by least squares in each tick. MuJoCo's loop is soft, and its sensors have noise.

You will see both components of the estimate beside the push, while the tool moves on a circle.
"""

import sys

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.laws import computed_torque
from mbcasadi.dynamics import predicted_readings
from mbcasadi.plant import Plant
from mbcasadi.plots import save_figure

ACCELEROMETER, FORCE = mujoco.mjtSensor.mjSENS_ACCELEROMETER, mujoco.mjtSensor.mjSENS_FORCE
SENSORS = {"felt": (ACCELEROMETER, (0.12, 0.0, 0.16)), "carried": (FORCE, (0.0, 0.0, 0.0))}
NOISE = np.repeat([0.1, 0.05], 3)  # m/s² of the accelerometer; N
DURATION, PERIOD = 1.0, 2e-3  # s
RADIUS, RATE = 0.05, 2 * np.pi  # m, rad/s
QUARTER_TURN, XZ = np.array([[0.0, -1.0], [1.0, 0.0]]), np.eye(3)[[0, 2]]


def sensed_five_bar() -> mujoco.MjSpec:
    """Return the five-bar with both sensors, one of them at the link's centre of mass."""
    spec = mujoco.MjSpec.from_file(str(models.path("five_bar")))
    for name, (kind, pos) in SENSORS.items():
        spec.body("left_distal").add_site(name=name, pos=pos)
        spec.add_sensor(name=name, type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=name)
    return spec


def push(t: float) -> np.ndarray:
    """Return the force on the link's centre of mass, along x and z, N."""
    return np.array([4.0 * (0.2 < t < 0.6), 3.0 * np.sin(6 * np.pi * t) * (t > 0.4)])


def main(figure: str | None = None) -> dict[str, np.ndarray]:
    """Return time, push, and its estimate."""
    model = sensed_five_bar()
    system, plant, rng = mb.read_mjcf(model), Plant(model), np.random.default_rng(0)
    law = computed_torque(system, mb.control.FrameTask("tool", position="xz", orientation=""))
    predict = predicted_readings(system, list(SENSORS), derivatives=False)
    com, origin = system.frame("felt").pose, system.frame("left_distal", "body").pose
    nbody, body = plant.model.nbody, plant.model.body("left_distal").id
    center = plant.frame_position("tool")[[0, 2]] - [RADIUS, 0.0]
    z, rows = law.controller.z0, []
    for t in PERIOD * np.arange(round(DURATION / PERIOD)):
        radius = RADIUS * np.array([np.cos(RATE * t), np.sin(RATE * t)])
        circle = {"tool_position": center + radius, "tool_velocity": RATE * QUARTER_TURN @ radius}
        q, v, ref = plant.q, plant.v, law.reference(**circle)
        u, z, *_ = law.function(q, v, ref, z)
        plant.apply_body_forces({"left_distal": push(t) @ XZ})
        plant.measure(np.array(u).ravel())
        y = np.concatenate([plant.sensor(name) for name in SENSORS]) + NOISE * rng.normal(size=6)
        arm, wrenches = np.array(com(q)[0] - origin(q)[0]).ravel(), np.zeros((3, 6, nbody))
        for wrench, force in zip(wrenches[1:], XZ, strict=True):
            wrench[:, body] = [*force, *np.cross(arm, force)]
        alone, *pushed = (predict(q, v, np.zeros(4), u, w)[0].full().ravel() for w in wrenches)
        G = np.transpose(pushed - alone)  # readings are affine in the force
        found = np.linalg.lstsq(G / NOISE[:, None], (y - alone) / NOISE, rcond=None)[0]
        rows.append([t, *push(t), *found])
        plant.step(np.array(u).ravel(), round(PERIOD / plant.timestep))
    (t,), true, found = np.split(np.array(rows).T, [1, 3])
    for axis, error in zip("xz", found - true, strict=True):
        print(f"force along {axis}: RMS error {np.sqrt(np.mean(error**2)):.2f} N")
    if figure is not None:
        pairs = zip(("along x, N", "along z, N"), true, found, strict=True)
        save_figure(figure, {n: {"push": (t, a), "felt": (t, b)} for n, a, b in pairs})
    return {"t": t, "push": true, "estimate": found}


if __name__ == "__main__":
    main(*sys.argv[1:])
