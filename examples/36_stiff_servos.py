"""An arm keeps to a circle at 1.1 m/s through its stiff position servos.

A position servo changes its force while its command acts: over a tick it adds `h kd` or so to the
inertia, 0.4 kg m² here, a hundred times what the wrist has. With the servos' map over the tick, and
their state predicted over the delay, servos are as good as motors.

You will see the tool's error with motors, and with servos with the map and without it. With a
model, a frame and a key frame on the command line it is another robot:
`mbcasadi example stiff_servos iiwa14.xml attachment_site home`
"""

import sys

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi.validation.spec import experiment_for_system, parse_spec

ARM = """
<mujoco model="arm"><compiler angle="radian"/><option integrator="implicitfast" timestep="0.002"/>
<default><position kp="2000" kv="200" ctrlrange="-3 3"/></default><worldbody><body pos="0 0 0.4">
<joint name="shoulder" axis="0 1 0" range="-3 3" limited="true"/>
<geom type="capsule" fromto="0 0 0 0.45 0 0" size="0.05" mass="4"/><body pos="0.45 0 0">
<joint name="elbow" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.04" mass="2"/><body pos="0.4 0 0">
<joint name="wrist" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0.08 0 0" size="0.03" mass="0.5"/>
<site name="tool" pos="0.1 0 0"/>
</body></body></body></worldbody>
<keyframe><key name="bent" qpos="-0.9 1.6 -0.7"/></keyframe><actuator>
<position name="shoulder" joint="shoulder"/><position name="elbow" joint="elbow"/>
<position name="wrist" joint="wrist"/></actuator></mujoco>
"""
RADIUS, SPEED, KP = 0.15, 1.1, 900.0  # m, m/s, 1/s²
DURATION, SETTLED = 3.0, 1.5  # s
CASES = {"motors": {}, "servos": {}, "servos, force at the start": {"servo_plant": "start"}}


def with_motors(spec: mujoco.MjSpec) -> mujoco.MjSpec:
    """Return the model with a motor in the place of each servo."""
    for actuator in spec.actuators:
        actuator.set_to_motor()
        actuator.ctrlrange = -300.0, 300.0  # N m
    return spec


def circle(frame: str, keyframe: str, options: dict) -> dict:
    """Return the tables of a controller that moves a frame on a circle in a vertical plane."""
    turn = {"frequency": SPEED / (2 * np.pi * RADIUS), "ramp": 1.0, "amplitude": RADIUS}
    planar = {"position": "xz", "orientation": "y"} if frame == "tool" else {}
    reference = {"x" if planar else "y": turn, "z": turn | {"phase": 90.0}}
    task = {"type": "frame", "frame": frame, "kp": KP, "reference": reference}
    tables = {"type": "inverse_dynamics_qp", "period": 0.002, "start": {"keyframe": keyframe}}
    tables["task"] = [task | planar, {"type": "posture", "kp": 25.0, "weight": 1e-4}]
    return tables | {"limits": {"joint": {}}, "options": options}


def main(source: str = "", frame: str = "tool", keyframe: str = "bent") -> dict:
    """Return the tool's RMS error, mm, for each of the cases and delays."""
    errors = {}
    for name, options in CASES.items():
        spec = mujoco.MjSpec.from_file(source) if source else mujoco.MjSpec.from_string(ARM)
        model = (with_motors(spec) if name == "motors" else spec).compile()
        start = np.array(model.key(keyframe).qpos)
        controller = parse_spec(circle(frame, keyframe, options))
        law = experiment_for_system(controller, mb.read_mjcf(model), start)
        for delay in (0, 1):
            follow = {"reference": law.reference, "q0": start, "delay": delay}
            run = mb.validate(law.controller, model, DURATION, **follow).runs[0]
            error = run.recording.monitor["error"][run.recording.t > SETTLED]
            place = error[:, : 3 if source else 2]
            errors[name, delay] = 1e3 * float(np.sqrt(np.mean(np.sum(place**2, axis=1))))
            text = f"{name}, {delay} ticks late: {errors[name, delay]:.2f} mm RMS"
            print(f"{text}; {'ended early' if run.recording.events else 'finished'}")
    return errors


if __name__ == "__main__":
    main(*sys.argv[1:])
