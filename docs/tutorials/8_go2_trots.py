# %% [markdown]
# # 8. Go2 trots, from MJCF to C
#
# MPC of the whole body plans torques, motion and contact forces of all joints over 0.4 s;
# inverse dynamics follows the plan every 2 ms. The robot weighs 10 % more than its model, is
# measured one tick late, and is pushed sideways. Get it with
#
#     git clone --depth 1 https://github.com/google-deepmind/mujoco_menagerie
#
# Without it, the tutorial takes the package's own quadruped, whose feet have the same names.

# %%
from pathlib import Path

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.validation import Push, ReportOptions, ScenarioOptions, outer_law

SCENE = Path("mujoco_menagerie/unitree_go2/scene.xml")  # the floor is in the scene
FEET = ("FL", "FR", "RL", "RR")
own = not SCENE.exists()
spec = mujoco.MjSpec.from_file(str(mb.models.path("quadruped") if own else SCENE))
BASE, KEY = ("trunk", "stand") if own else ("base", "home")

# %% [markdown]
# ## Feet
#
# A plan places feet, so it needs points that stay where they are on a foot: sites. The own
# quadruped has them; Go2 gets one in the centre of the ball of each foot. The key frame has its
# feet inside the floor; the last line lifts it.

# %%
if not own:
    for foot in FEET:
        ball = spec.geom(foot)
        ball.parent.add_site(name=foot, pos=ball.pos)
system = mb.read_mjcf(spec)
stand = np.array(system.tree.keyframes[KEY])
if not own:
    stand[2] -= float(mb.contacts_of(system, ground="floor", geoms=["FL"])[0].gap(stand)[0])
feet = [mb.Contact(foot, friction=0.6, sides=4) for foot in FEET]

# %% [markdown]
# ## The plan
#
# A gait says when each foot is on the ground; its times are multiples of the period. Weights,
# heights of steps and gains follow from the size of the robot.

# %%
gait = mpc.trot(0.4, duty=0.55, start=0.3)  # s, share on the ground, s
whole = mpc.whole_body_mpc(system, 20, 0.02, feet, gait=gait, q0=stand)
print(whole)
print(whole.plan)

# %% [markdown]
# ## In MuJoCo
#
# The command is a speed ahead and to the left, and a turn. Both laws run as C, the plan one of its
# own ticks late. The push has 1 N s/kg.


# %%
def command(t):
    """Return 0.8 m/s ahead, reached from 0.4 s to 1.4 s."""
    return [0.8 * min(max(t - 0.4, 0.0), 1.0), 0.0, 0.0]


mass = sum(body.mass for body in system.tree.bodies)
push = Push(BASE, [0.0, 10.0 * mass, 0.0], 2.0, 2.1)  # N, s
with outer_law(whole.plan, whole, command) as outer:
    report = mb.validate(
        whole.law,
        spec,
        4.0,
        q0=stand,
        perturb={"mass": 0.1},
        delay=1,
        disturbance=push,
        scenario=ScenarioOptions(outer=outer),
        report=ReportOptions(explain=False),
    )
    planned = np.ravel(outer.record["status"])
run = report.runs[0].recording

# %%
full = run.t > 3.0
print(f"speed {run.v[full, 0].mean():.2f} m/s of 0.80")
print(f"pushed to {run.v[run.t < 3.0, 1].max():.2f} m/s, then {run.v[full, 1].mean():+.2f} m/s")
print(f"plans solved: {np.mean(planned == 0):.1%}")
print("largest torque:", f"{np.abs(run.u / system.limits.ctrl[:, 1]).max():.0%} of its limit")

# %% [markdown]
# ## As C
#
# One folder has two functions for two threads: `trot_plan` every 20 ms, `trot_tick` every 2 ms.
# Under supervision a plan that is older than 0.1 s is left by the safe output of the controller,
# and measurements that jump reach neither of them.

# %%
watch = mb.codegen.Supervision(stale_after=5, recover_after=50)
project = mb.export_two_rates(
    whole, "trot_c", name="trot", latest=0.1, supervision=watch, overwrite=True
)
print(*sorted(path.name for path in project.folder.iterdir()), sep="\n")

# %% [markdown]
# More: [whole-body MPC](../guides/whole-body-mpc.md), the same as
# [a controller's file](../guides/spec.md#all-types-of-controllers), and
# [supervision](../guides/supervision.md#a-plan-and-a-tick).
