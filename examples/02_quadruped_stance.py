"""A quadruped stands on four feet and on three, and reports what is infeasible.

The mask of the contacts is an input: it switches rows of the same problem, so the same Function,
and the same generated C, works for every set of feet. Contact forces stay in their friction cones.

You will see the load on each foot, then the rows that contradict each other.
"""

import numpy as np

import mbcasadi as mb
from mbcasadi import models

FEET = ("FL", "FR", "RL", "RR")
LEAST_LOAD = 2.0  # N, of a foot that stands


def main() -> dict[str, object]:
    """Solve three stances and return what they gave."""
    system = mb.read_mjcf(models.path("quadruped"))
    assert system.tree is not None
    tasks = [
        mb.control.FrameTask("trunk", kind="body", kp=100.0, weight=100.0, name="base"),
        mb.control.PostureTask(kp=50.0),
    ]
    feet = [mb.Contact(name, friction=0.7, sides=4, min_force=LEAST_LOAD) for name in FEET]
    law = mb.control.InverseDynamicsQP(system, tasks, feet)
    q, v = system.tree.keyframes["stand"], np.zeros(system.nv)
    ref = law.reference_at(q)

    four = law.solve(q, v, ref)
    print("four feet:", four.status_text, "- load", np.round(four.contact_forces[:, 0], 1), "N")

    # lean away from the front left
    ref[law.reference_slices["base.position"]] += [0.03, -0.03, 0.0]
    three = law.solve(q, v, ref, mask=[0, 1, 1, 1])
    print("three feet:", three.status_text, "- load", np.round(three.contact_forces[:, 0], 1), "N")

    # faster down than gravity
    ref = law.reference_at(q, {"base.acceleration": [0.0, 0.0, -30.0]})
    weak = np.tile([-2.0, 2.0], (system.nu, 1))  # N m
    tired = mb.control.InverseDynamicsQP(system, tasks, feet, force_limits=weak)
    pressed = tired.solve(q, np.r_[np.zeros(5), 9.0, 8.0 * np.ones(12)], ref)
    print(pressed.explain())
    return {"four": four, "three": three, "pressed": pressed}


if __name__ == "__main__":
    main()
