# %% [markdown]
# # 2. Go2 stands, in twenty lines
#
# A robot of MuJoCo Menagerie stands on its feet, is pushed, weighs 10 % more than its model
# and is measured one tick late. Get it with
#
#     git clone --depth 1 https://github.com/google-deepmind/mujoco_menagerie
#
# Without it, the tutorial takes the package's own quadruped, whose feet have the same names.

# %%
from pathlib import Path

import numpy as np

import mbcasadi as mb
from mbcasadi.control import FrameTask, InverseDynamicsQP, JointLimits, PostureTask

SCENE = Path("mujoco_menagerie/unitree_go2/scene.xml")  # the floor is in the scene
BODY, KEY, PUSH = "base", "home", 60.0  # N
if not SCENE.exists():
    SCENE, BODY, KEY, PUSH = mb.models.path("quadruped"), "trunk", "stand", 30.0
system = mb.read_mjcf(SCENE)
print(system)

# %% [markdown]
# ## Feet
#
# Contacts are read from the model's geometry: which geoms touch the floor, with which
# friction. The key frame has Go2's feet inside the floor; the last line lifts it.

# %%
feet = mb.contacts_of(system, ground="floor", geoms=["FL", "FR", "RL", "RR"])
stand = np.array(system.tree.keyframes[KEY])
stand[2] -= float(feet[0].gap(stand)[0])
print(feet)

# %% [markdown]
# ## Controller
#
# The base keeps its pose. The posture has a thousandth of the weight and decides what the
# base leaves open. Torques and joint ranges are those of the model, forces stay in their
# friction cones. The gains and the observer, which learns the weight that the model
# lacks, follow from the period and the delay.

# %%
gains = mb.control.propose_gains(0.002, delay=1, lag=0.005, observer=True)
ctl = InverseDynamicsQP(
    system,
    [
        FrameTask(BODY, kind="body", name="base", kp=gains.kp, kd=gains.kd),
        PostureTask(kp=50.0, weight=1e-3),
    ],
    [foot.as_contact() for foot in feet],
    joint_limits=JointLimits(),
    observer=gains.observer,
    period=0.002,
    delay=1,
    name="stand",
)
solution = ctl.solve(stand, np.zeros(system.nv), ctl.reference_at(stand))
print(solution.status_text)
print("normal forces:", solution.contact_forces[:, 0].round(1), "N")

# %% [markdown]
# ## In MuJoCo
#
# Without a reference the controller holds its start. The C is generated and compiled
# once; the next run with the same controller takes it from the cache.


# %%
def push(t):
    """Push the base to the left for a tenth of a second."""
    force = np.zeros(system.nv)
    force[1] = PUSH * (1.0 <= t < 1.1)  # N
    return force


report = mb.validate(
    ctl,
    SCENE,
    3.0,
    q0=stand,
    perturb={"mass": 0.1},
    delay=1,
    disturbance=push,
    scenario=mb.validation.ScenarioOptions(timestep=0.002),
)
print(report)

# %%
recording = report.runs[0].recording
error = 1e3 * recording.monitor["error"][:, :3]
print("furthest away:", np.abs(error).max(axis=0).round(1), "mm")
print("at the end:   ", np.abs(error[-1]).round(1), "mm")

# %% [markdown]
# ## What the limits cost
#
# Tasks are met in the least-squares sense, limits hold. `explain` says which limits cost what.
# Here the desired acceleration of the base is 9 m/s², more than the friction gives.

# %%
still, slide = np.zeros(system.nv), ctl.reference_at(stand, {"base.acceleration": [9, 0, 0]})
print(ctl.explain(stand, still, slide))

# %% [markdown]
# The whole way to C++ on a robot is in
# [a robot of Menagerie, from model to C++](../guides/first-robot.md).
# Next: [an arm with stock servos](3_arm_with_servos.py).
