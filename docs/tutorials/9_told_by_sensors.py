# %% [markdown]
# # 9. Told only by an IMU and encoders
#
# Nothing measures where a legged robot is, or how fast it moves. An estimator makes q and v of
# what is measured: a gyroscope, an accelerometer, joint positions, and feet that stand. Here Go2
# stands by it against a push. Get the robot with
#
#     git clone --depth 1 https://github.com/google-deepmind/mujoco_menagerie
#
# Without it, the tutorial takes the package's own quadruped, whose feet have the same names.

# %%
from pathlib import Path

import numpy as np

import mbcasadi as mb
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.estimation import (
    Encoders,
    Imu,
    base_estimator,
    encoder_noise,
    inertial_noise,
    with_estimator,
)
from mbcasadi.validation import Criteria, ReportOptions, Sensing, SensorErrors

SCENE, PERIOD = Path("mujoco_menagerie/unitree_go2/scene.xml"), 0.002  # s
BODY, KEY, SITE = "base", "home", ("imu", "site")
if not SCENE.exists():
    SCENE, BODY, KEY, SITE = mb.models.path("quadruped"), "trunk", "stand", ("trunk", "body")
system = mb.read_mjcf(SCENE)
feet = mb.contacts_of(system, ground="floor", geoms=["FL", "FR", "RL", "RR"])
stand = np.array(system.tree.keyframes[KEY])
stand[2] -= float(feet[0].gap(stand)[0])

# %% [markdown]
# ## The controller
#
# As in the second tutorial. It takes q and v, wherever they come from.

# %%
gains = mb.control.propose_gains(PERIOD, delay=1, lag=0.005)
law = InverseDynamicsQP(
    system,
    [
        FrameTask(BODY, kind="body", name="base", kp=gains.kp, kd=gains.kd),
        PostureTask(kp=50.0, weight=1e-3),
    ],
    [foot.as_contact() for foot in feet],
    period=PERIOD,
    delay=1,
    name="stand",
)

# %% [markdown]
# ## Numbers of the data sheet
#
# An ICM-42688 has 2.8 mdps/√Hz and 70 µg/√Hz. What no data sheet has, how a bias walks, a log of
# the sensor at rest shows by its Allan deviation: a minute is enough for the white noise, hours
# for the walk. The log here is drawn.

# %%
gyro_noise, accelerometer_noise = np.deg2rad(2.8e-3), 70e-6 * 9.81  # rad/s/√Hz, m/s²/√Hz
minute = gyro_noise / np.sqrt(PERIOD) * np.random.default_rng(0).standard_normal(30_000)
measured = inertial_noise(minute, PERIOD)
print(f"gyroscope: {measured.density:.2e} rad/s/√Hz, data sheet {gyro_noise:.2e}")

# %% [markdown]
# ## The estimator
#
# It reads what the robot has, and says what nothing observes. Joints without an encoder would be
# named here too, or be an error where the feet need them.

# %%
estimator = base_estimator(
    system,
    law.controller.contacts,
    imu=Imu(*SITE, gyro_noise=gyro_noise, accelerometer_noise=accelerometer_noise),
    encoders=Encoders(noise=encoder_noise(14)),
    q0=stand,
    period=PERIOD,
)
print(estimator.function)
print("nothing observes:", "; ".join(estimator.unobservable))

# %% [markdown]
# ## In MuJoCo
#
# The plant's sensors have offsets that the estimator does not know, and the encoders round to
# their steps. Everything comes one tick late. `fast` does not wait for the law's C, which comes
# last.

# %%
sensors = Sensing(
    estimator,
    {
        "gyro": SensorErrors(bias=5e-3, walk=1e-5),  # rad/s, rad/s²/√Hz
        "accelerometer": SensorErrors(bias=0.05, walk=1e-4),  # m/s², m/s³/√Hz
        "position": SensorErrors(noise=0.0, quantum=2 * np.pi / 2**14),  # rad
    },
)
mass = sum(body.mass for body in system.tree.bodies)
report = mb.validate(
    law,
    SCENE,
    1.5,
    q0=stand,
    delay=1,
    fast=True,
    sensors=sensors,
    disturbance=mb.validation.Push(BODY, [0.0, 4.0 * mass, 0.0], 0.8, 1.0),  # N, s
    criteria=Criteria({"estimate.velocity": 0.03, "estimate.within": 0.95}, settle=0.5),
    report=ReportOptions(explain=False),
)
print(report)

# %% [markdown]
# ## How wrong is it, and does it know?
#
# The report draws each error between three of its standard deviations, the innovations, and the
# squared error by its covariance, which is 1 in the mean where the covariance is right. Here the
# sideways velocity of the base: the push shows in it, and the error stays inside.

# %%
report.save("told.html")
run = report.runs[0].recording
names = run.columns["monitor.estimate_error"].names
y = 7  # position, rotation, then velocity
late = run.t > 0.5  # s
error, bound = (run.monitor[f"estimate_{key}"][late, y] for key in ("error", "deviation"))
lines = {"error": error, "+3σ": 3 * bound, "-3σ": -3 * bound}
curves = {name: (run.t[late], 1e3 * line) for name, line in lines.items()}
mb.plots.save_figure("told.png", {f"{names[y]}, mm/s": curves}, dashed=["+3σ", "-3σ"])
print(f"fastest {1e3 * np.abs(run.v[:, 1]).max():.0f} mm/s", end=", ")
print(f"estimated to {1e3 * np.abs(error).max():.1f} mm/s")

# %% [markdown]
# ## Measurements to torques, as C
#
# One law, from what the sensors read. `y` is explained in the header, row by row; a sample that
# is missing is said by `valid`. Without the IMU for 50 ms the law gives its safe output.

# %%
whole = with_estimator(law, estimator, delay=1)
project = mb.export_c(whole, "told_c", name="told", overwrite=True)
print(*sorted(path.name for path in project.folder.iterdir()), sep="\n")

# %% [markdown]
# The same from a file: `mbcasadi init go2.xml -o stand.toml` writes an `[estimation]` table as a
# comment; then `mbcasadi validate`, `campaign --range sensor_noise=0.5:4` and `export` take it, and
# `mbcasadi estimate go2.xml walk.mcap -c stand.toml` runs it through a log of the robot.
# More: [state estimation](../guides/estimation.md).
