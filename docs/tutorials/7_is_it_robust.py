# %% [markdown]
# # 7. Is my controller robust?
#
# One run in MuJoCo shows that a controller works. A campaign shows how often, what decides
# that, and where it ends.
#
# ## The controller
#
# The one of the first tutorial: it swings the crank of a four-bar.

# %%
import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP, PostureTask, follow_motions
from mbcasadi.validation import Criteria, Trial, margin, sampled_cases

MODEL = mb.models.path("four_bar")
system = mb.read_mjcf(MODEL)
ctl = InverseDynamicsQP(system, [PostureTask(["crank"], kp=900.0)], name="crank")
AMPLITUDE, RATE = 0.3, 2 * np.pi  # rad, rad/s


t = ca.SX.sym("t")
angle = AMPLITUDE * (1 - ca.cos(RATE * t)) + system.tree.q0[0]  # about the start, from rest
swing = follow_motions(ctl, {"posture": mb.motion.vector_motion(t, angle)})


# %% [markdown]
# ## What may be wrong
#
# Ranges of errors of the plant: 20 % of all masses, damping, and up to three ticks between a
# measurement and its control. A Sobol sequence covers them evenly; a power of two suits it.
# The criterion is what you need, here 3 % of the amplitude.

# %%
plan = sampled_cases({"mass": (-0.2, 0.2), "damping": (-0.5, 0.5), "delay": (0, 3)}, 16)
need = Criteria({"tracking.rms_share:posture": 0.03})
trial = Trial(1.0, reference=swing, criteria=need)
result = mb.campaign(ctl, MODEL, trial, plan)
print(result)

# %% [markdown]
# The pass rate has its confidence interval. `sensitivity` says what decides: the mass and the
# delay, or neither.

# %%
for row in result.sensitivity()[:3]:
    print(row)

# %% [markdown]
# ## The worst case, again
#
# A case is a few numbers. Alone it gives the same motion, bit by bit, and the full report,
# which says why it failed.

# %%
worst = result.worst(1)[0]
print(worst.case)
report = mb.validation.case_report(ctl, MODEL, trial, plan, worst.number)
print(report)

# %% [markdown]
# ## How far is the edge?
#
# `margin` lets one error grow until the controller fails.

# %%
print(margin(ctl, MODEL, trial, over="mass", largest=0.5))

# %% [markdown]
# ## What to do about it
#
# A disturbance observer estimates the force that the model lacks. Its gain follows from the
# period and the delay.

# %%
gains = mb.control.propose_gains(0.001, delay=1, observer=True)
print(gains)
better = InverseDynamicsQP(
    system,
    [PostureTask(["crank"], kp=gains.kp, kd=gains.kd)],
    observer=gains.observer,
    delay=1,
    name="crank_with_observer",
)
again = mb.campaign(better, MODEL, trial, plan)
print(again.pass_rate)

# %% [markdown]
# Thousands of cases on all cores, on a cluster, stored and resumed:
# [campaigns](../guides/campaigns.md).
