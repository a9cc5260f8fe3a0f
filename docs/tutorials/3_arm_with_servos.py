# %% [markdown]
# # 3. An arm with stock servos
#
# The arms of MuJoCo Menagerie have position servos. A controller that takes a servo's
# force at the start of a tick for the force of the tick is wrong: while its command acts,
# a stiff servo resists like added inertia, a hundred times that of the wrist. Here
# the servo's map over the tick is part of the QP.
#
# The robot is Menagerie's iiwa. Without it, the tutorial puts such servos on the
# package's arm.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi.control import FrameTask, InverseDynamicsQP, JointLimits, PostureTask, follow_motions

FILE = Path("mujoco_menagerie/kuka_iiwa_14/iiwa14.xml")
if FILE.exists():
    model, TOOL = mujoco.MjModel.from_xml_path(str(FILE)), "attachment_site"
else:
    spec, TOOL = mujoco.MjSpec.from_file(str(mb.models.path("arm_gripper"))), "tool"
    for servo in spec.actuators[:7]:
        servo.set_to_position(kp=2000.0, kv=200.0)
        servo.ctrlrange, servo.forcerange = (-2.9, 2.9), (-87.0, 87.0)
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.timestep = 0.002
    model = spec.compile()
system = mb.read_mjcf(model)
start = np.array(system.tree.keyframes["home"])
print(system)

# %% [markdown]
# ## Controller
#
# The controls are angles, those of the servos. Nothing else changes.

# %%
ctl = InverseDynamicsQP(
    system,
    [FrameTask(TOOL, name="tool", kp=900.0), PostureTask(kp=25.0, weight=1e-4)],
    joint_limits=JointLimits(joints=[f"joint{i}" for i in range(1, 8)]),
    period=0.002,
    delay=1,
    name="servo_arm",
)
held = ctl.reference_at(start)
solution = ctl.solve(start, np.zeros(system.nv), held)
print(solution.status_text)
print("commands less angles:", (solution.u[:7] - start[:7]).round(4), "rad")

# %% [markdown]
# ## A circle
#
# 0.1 m of radius, once a second, with velocity and acceleration in the reference. A
# ramp starts it at rest.

# %%
RADIUS, TURN = 0.1, 1.0  # m, s
tool = mb.motion.frame_pose(system, TOOL, start)
centre = tool.position - [0.0, 0.0, RADIUS]
way = mb.motion.circle(tool, centre, axis=[-1.0, 0.0, 0.0], period=TURN, ramp=1.0)
circle = follow_motions(ctl, {"tool": way}, rest=ctl.reference_at(start))

# %% [markdown]
# ## In MuJoCo
#
# One tick late. `validate` tells the controller the plant's integrator and time step, on
# which a stiff servo's map depends.

# %%
report = mb.validate(ctl, model, 4.0, reference=circle, q0=start, delay=1)
print(report)

# %%
recording = report.runs[0].recording
error = 1e3 * np.linalg.norm(recording.monitor["error"][:, :3], axis=1)
figure, axes = plt.subplots(figsize=(7, 2.5))
axes.plot(recording.t, error)
axes.set(xlabel="time, s", ylabel="error of the tool, mm")
figure.tight_layout()
print(f"RMS {np.sqrt(np.mean(error[recording.t > 1.5] ** 2)):.2f} mm")

# %% [markdown]
# Next: [linear MPC](4_linear_mpc.py). More about servos: [the guide](../guides/servos.md).
