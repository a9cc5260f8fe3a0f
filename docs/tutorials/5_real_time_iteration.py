# %% [markdown]
# # 5. A real-time iteration
#
# A cart-pole hangs and has to stand up. An optimal control problem on the mechanism's own
# dynamics plans the swing; the real-time iteration takes one Gauss-Newton step of that
# problem in each tick, as C.

# %%
import casadi as ca
import matplotlib.pyplot as plt
import numpy as np

import mbcasadi as mb
from mbcasadi import mpc

MODEL = mb.models.path("cart_pole")
system = mb.read_mjcf(MODEL)  # its deck is held by redundant rows
CART, POLE = 0, 4
PERIOD, HORIZON = 0.02, 60  # s, periods

# %% [markdown]
# ## The problem
#
# Residuals are CasADi expressions of q, v and u. Sine and cosine of the lean do not count
# turns, so a pole that has gone around is not unwound. The steps end on the
# constraint manifold: no DAE solver, no independent coordinates.

# %%
at = mpc.stage_symbols(system)


def upright(place, angle, speed, turn):
    """Standing in the middle of the rail, with roots of weights."""
    lean = at.q[POLE]
    return ca.vertcat(
        place * at.q[CART],
        speed * at.v[CART],
        turn * at.v[POLE],
        angle * ca.sin(lean),
        angle * (1 - ca.cos(lean)),
    )


along = ca.vertcat(upright(2.0, 2.0, 0.3, 0.5), 0.4 * at.u)
cost = mpc.Cost(residual=along, terminal=upright(7.0, 7.0, 2.2, 2.2))
limits = mpc.StageBounds(u=[[-25.0, 25.0]])  # N
step = mpc.StepOptions(order=2, pivot=False)
ocp = mpc.optimal_control_problem(system, HORIZON, PERIOD, [cost, limits], symbols=at, step=step)

# %% [markdown]
# ## The first plan
#
# The solution is verified independently of the solver's status.

# %%
hanging = np.zeros(10)
hanging[POLE] = np.pi
straight = np.linspace(hanging, np.zeros(10), HORIZON + 1)
guess = mpc.initial_guess(ocp, straight, np.zeros((HORIZON, 1)))
best = mpc.solve_ocp(ocp, hanging, guess=guess)
print(best.in_words)

# %% [markdown]
# ## The controller
#
# It begins with that plan and knows that its control acts one tick late.

# %%
rti = mpc.real_time_iteration(ocp, best, delay=1, name="swing_up")
print(rti.function)

# %% [markdown]
# ## In MuJoCo
#
# 10 % heavier, one tick late, and pushed while it stands.


# %%
def push(t):
    """Push the pole for a tenth of a second."""
    force = np.zeros(system.nv)
    force[POLE] = 1.0 * (3.0 <= t < 3.1)  # N m
    return force


report = mb.validate(
    rti,
    MODEL,
    6.0,
    q0=hanging[:5],
    perturb={"mass": 0.1},
    delay=1,
    disturbance=push,
)
print(report)

# %%
recording = report.runs[0].recording
lean = np.angle(np.exp(1j * recording.q[:, POLE]))
figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(7, 4))
top.plot(recording.t, lean)
top.set_ylabel("lean, rad")
bottom.step(recording.t, recording.u[:, 0], where="post")
bottom.set(ylabel="force, N", xlabel="time, s")
figure.tight_layout()
print(f"lean at the end: {abs(lean[-1]):.3f} rad")

# %% [markdown]
# A tick has two phases: the preparation needs no measurement, the feedback is short.
# See [nonlinear MPC](../guides/nonlinear-mpc.md).
# Next: [a paper's law](6_law_of_a_paper.py).
