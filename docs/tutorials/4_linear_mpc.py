# %% [markdown]
# # 4. Linear MPC of a constrained mechanism
#
# A cart-pole whose cart runs on a deck that redundant constraints hold. The MPC is
# linear, keeps its limits, knows its delay, and runs as C.

# %%
import matplotlib.pyplot as plt
import numpy as np

import mbcasadi as mb

MODEL = mb.models.path("cart_pole")
system = mb.read_mjcf(MODEL)
print(system)

# %% [markdown]
# ## A linear model on the manifold
#
# `equilibrium` returns a pose and the controls that hold it. `linearize` returns the motion
# that the constraints allow about it: as many coordinates as the mechanism has freedoms,
# whichever rows repeat others.

# %%
rest = mb.equilibrium(system)
linear = mb.linearize(system, rest)
print(rest)
print(linear)
print("poles:", np.linalg.eigvals(linear.dfdx).round(2), "1/s")

# %% [markdown]
# A pole on the right of the axis: upright is unstable. Where a motor could not
# stabilise it, `linear_mpc` would name the uncontrollable mode and the joints that move in
# it.
#
# ## MPC
#
# Weights of q and v in the mechanism's coordinates, one weight of the control. The end
# cost is that of the LQR. Bounds of the model's motors are kept; `du_bounds` limits
# their rate, and `delay` is the number of ticks until a control acts.

# %%
PERIOD, HORIZON = 0.02, 30  # s, periods
mpc = mb.mpc.linear_mpc(
    linear,
    mb.mpc.LinearOptions(
        HORIZON,
        [1.0] * (2 * system.nv),
        0.01,
        period=PERIOD,
        du_bounds=[[-8.0, 8.0]],  # N a period
        delay=1,
        name="balance",
    ),
)
print(mpc.function)

# %% [markdown]
# ## One tick
#
# The cart starts 0.3 m from where it should be, at rest. `assemble` moves a pose onto the
# constraints: carriage and deck move together.

# %%
CART = 0
away = mb.assemble(system, rest.q + np.array([0.3, 0.3, 0.0, 0.0, 0.0]))
solution = mpc.solve(away, np.zeros(system.nv), mpc.reference_at(rest.q))
print(solution.status_text, "with", solution.u.round(2), "N")

# %% [markdown]
# ## In MuJoCo
#
# The report compares the plans of the controller with the motion that followed.

# %%
setpoint = mpc.reference_at(rest.q)
report = mb.validate(mpc, MODEL, 5.0, reference=setpoint, q0=away, perturb={"mass": 0.1}, delay=1)
print(report)

# %%
recording = report.runs[0].recording
figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(7, 4))
top.plot(recording.t, recording.q[:, CART])
top.set_ylabel("cart, m")
bottom.step(recording.t, recording.u[:, 0], where="post")
bottom.set(ylabel="force, N", xlabel="time, s")
figure.tight_layout()

# %% [markdown]
# Next: [a real-time iteration](5_real_time_iteration.py). More about linear MPC, offsets
# and soft limits: [linear MPC](../guides/mpc.md).
