# %% [markdown]
# # 1. A four-bar, from MJCF to C
#
# Ten minutes. You read a mechanism with a loop, look at what its constraints mean, hold
# and move it with one motor, and get the controller as C that MuJoCo has tried.
#
# You need `pip install "mbcasadi[tools]"` and a C compiler on the `PATH`.
#
# ## The model
#
# The package has small models; `mb.models.path` returns the file of one. Anything that
# MuJoCo reads will do: an MJCF or URDF file, a text, an `MjSpec`, an `MjModel`.

# %%
import casadi as ca
import matplotlib.pyplot as plt
import numpy as np

import mbcasadi as mb

MODEL = mb.models.path("four_bar")
system = mb.read_mjcf(MODEL)
print(system)

# %% [markdown]
# Three hinges, one motor, and three rows of a `connect` constraint that closes the loop.
# The members of a system are CasADi Functions, in the order and the frames of MuJoCo.

# %%
q, v = system.tree.q0, np.zeros(system.nv)
print("mass matrix:\n", system.mass_matrix(q).full().round(4))
print("Jacobian of the loop:\n", system.constraint_jacobian(q).full().round(3))

# %% [markdown]
# The second row of the Jacobian is zero: no link can leave its plane, so the loop needs
# two of the three rows. Three coordinates less two leave one freedom. `redundancy` says
# so, and nothing that follows needs a Jacobian of full rank.

# %%
print(mb.redundancy(system, q))

# %% [markdown]
# ## Dynamics
#
# `forward_dynamics` eliminates the loop: from q, v and the applied force it gives the
# acceleration, the constraint force, and the multipliers of least norm.

# %%
fd = mb.forward_dynamics(system)
print(fd)
force = system.actuator_force(q, v, [0.3])  # 0.3 N m at the crank
a, f_c, lam = fd(q, v, force)
print("acceleration:", a.full().ravel().round(3), "rad/s²")
print("the loop stays closed:", float(abs(system.constraint_jacobian(q) @ a).full().max()) < 1e-9)

# %% [markdown]
# ## A controller
#
# A task defines the desired motion, here of the crank. The controller is a QP for each tick, in the
# forces of the motors only, with their limits.

# %%
from mbcasadi.control import InverseDynamicsQP, PostureTask, follow_motions

crank = PostureTask(["crank"], kp=900.0)
ctl = InverseDynamicsQP(system, [crank], name="crank", period=0.001)
print("reference:", dict(ctl.reference_slices))
solution = ctl.solve(q, v, ctl.reference_at(q))
print(solution.status_text, "with", solution.u.round(3), "N m against gravity")

# %% [markdown]
# ## In MuJoCo
#
# The reference is a function of time. A position that moves needs its velocity and its
# acceleration too: without them the controller would brake all the time. `mb.motion` takes
# them from the position, as its exact derivatives.

# %%
AMPLITUDE, RATE = 0.6, 2 * np.pi * 0.5  # rad, rad/s


t = ca.SX.sym("t")
angle = AMPLITUDE / 2 * (1 - ca.cos(RATE * t)) + q[0]  # about the start, from rest
swing = follow_motions(ctl, {"posture": mb.motion.vector_motion(t, angle)})


# %% [markdown]
# `validate` generates the C, compiles it and lets MuJoCo step the model, which knows none
# of these equations. The plant is 10 % heavier than the model, and its measurement is one
# tick late.

# %%
report = mb.validate(ctl, MODEL, 4.0, reference=swing, perturb={"mass": 0.1}, delay=1)
print(report)

# %%
run = report.runs[0].recording
figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(7, 4))
top.plot(run.t, run.q[:, 0])
top.set_ylabel("crank, rad")
bottom.plot(run.t, run.u[:, 0])
bottom.set(ylabel="torque, N m", xlabel="time, s")
figure.tight_layout()

# %% [markdown]
# ## C
#
# `export_c` writes a folder: C99 without allocation, a header with the index of every
# component, a manifest, a `CMakeLists.txt`, an example.

# %%
project = mb.export_c(ctl, "crank_c", overwrite=True)
print(project)
print(sorted(path.name for path in project.folder.iterdir()))
times = project.time({"q": run.q[:1000], "v": run.v[:1000], "ref": swing(0.0)})
print(f"{1e6 * times.median:.1f} µs a tick")

# %% [markdown]
# Next: [Go2 stands in twenty lines](2_go2_stands.py).
