# %% [markdown]
# # 6. A paper's law: motion and force, separately
#
# An arm slides along a surface and presses on it with 50 N. Aghili (2005) splits the
# motors' force by a projector: one part moves the arm, the other only presses. The law
# is here as the paper has it, with the corrections of [its errata](../results/errata.md).

# %%
import matplotlib.pyplot as plt
import numpy as np

import mbcasadi as mb
from mbcasadi.control.laws import ForceGains, hybrid_motion_force_control, joint_coordinates

MODEL = mb.models.path("prr_arm")  # the surface is a constraint of three rows
system = mb.read_mjcf(MODEL)
print(system)
print(system.nc, "rows of", *set(system.constraint_names))

# %% [markdown]
# ## The projector
#
# `P` projects onto the motions that the constraints allow. Rows may repeat: only
# range and null space of the Jacobian matter.

# %%
rows = system.constraint_jacobian(system.tree.q0).full()
P = np.eye(system.nv) - np.linalg.pinv(rows) @ rows
print("rank of the rows:", np.linalg.matrix_rank(rows), "of", len(rows))
print("‖P P − P‖ =", f"{np.abs(P @ P - P).max():.0e}", " ‖A P‖ =", f"{np.abs(rows @ P).max():.0e}")

# %% [markdown]
# ## The law
#
# Two coordinates describe the motion, one multiplier is the force to be held. PI on
# the measured force removes what a wrong mass leaves. A gain `G_F` of one or more is
# refused: the measured force is that of the last control, and the loop would diverge.

# %%
theta = joint_coordinates(system, ("tip", "q1"))
press = ForceGains(0.5, 50.0, rows=("surface.2",))
law = hybrid_motion_force_control(system, theta, press, kp=400.0)
print("reference:", ", ".join(law.reference_slices))

try:
    hybrid_motion_force_control(system, theta, ForceGains(1.1, rows=("surface.2",)))
except mb.errors.MbcasadiError as error:
    print(error)


# %%
def slide(t):
    """The tip sways by 0.15 m, the first link keeps its angle, the surface carries 50 N."""
    return law.reference(
        theta_q=[0.2 + 0.15 * (1 - np.cos(np.pi * t)), 1.4],
        theta_v=[0.15 * np.pi * np.sin(np.pi * t), 0.0],
        theta_a=[0.15 * np.pi**2 * np.cos(np.pi * t), 0.0],
        force_lam=50.0,
    )


# %% [markdown]
# ## In MuJoCo, 10 % heavier

# %%
report = mb.validate(law, MODEL, 3.0, reference=slide, perturb={"mass": 0.1})
print(report)

# %%
recording = report.runs[0].recording
force = recording.equality_force[:, 0]
figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(7, 4))
top.plot(recording.t, force)
top.set(ylabel="force on the surface, N", ylim=(40, 60))
bottom.plot(recording.t, 1e3 * recording.monitor["error"][:, 0])
bottom.set(ylabel="error of the tip, mm", xlabel="time, s")
figure.tight_layout()
late = recording.t > 0.5
print(f"force: {np.sqrt(np.mean((force[late] - 50.0) ** 2)):.2f} N RMS from 50 N")

# %% [markdown]
# All laws, what they need and where they fail: [control laws](../guides/control-laws.md).
# `within_limits(law)` keeps any of them inside the limits of the motors.
# Next: [is my controller robust?](7_is_it_robust.py).
