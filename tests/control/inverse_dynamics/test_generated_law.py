"""The exported C answers as the Function in Python does, infeasible and bad inputs included."""

import numpy as np
from mechanisms import feet, stand, system_of

from mbcasadi.codegen import export_c
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description.status import Status

# Relative. Both solvers leave a stationarity of some 1e-12, and forces that cause no motion are
# determined by a weight of 1e-7 only: 1e-5, and ten times that for margin.
SAME = 1e-4


def test_the_exported_law_answers_as_the_function_does(tmp_path):
    rng = np.random.default_rng(12)
    system = system_of("quadruped")
    tasks = [FrameTask("trunk", kind="body", weight=100.0, name="base"), PostureTask(kp=50.0)]
    law = InverseDynamicsQP(system, tasks, feet(min_force=15.0, max_force=60.0), name="law")
    exported = export_c(law, tmp_path / "law").load()
    seen, usual = set(), 0
    for k in range(1000):
        q, v = stand(system, rng, spread=0.1, speed=0.5, key="stand")
        if k % 7 == 0:
            v *= 20.0  # too fast for feet that have to stay on the ground
        if k % 50 == 0:
            v[k % 18] = np.nan
        ref = law.reference_at(system.tree.keyframes["stand"])
        ref[law.reference_slices["base.acceleration"]] = 2 * rng.standard_normal(3)
        mask = rng.random(4) < 0.9
        ours, theirs = (
            [np.array(out).ravel() for out in call(q, v, ref, mask, law.z0)]
            for call in (law.function, exported)
        )
        assert ours[2] == theirs[2]
        usual += np.abs(theirs[0] - ours[0]).max() <= 1e-7 * np.abs(ours[0]).max()
        seen.add(int(ours[2][0]))
        np.testing.assert_allclose(theirs[0], ours[0], rtol=0, atol=SAME * np.abs(ours[0]).max())
        rows = len(law.row_names)  # the active set, then what the safe output remembers
        np.testing.assert_array_equal(theirs[1][:rows], ours[1][:rows])
        np.testing.assert_allclose(
            theirs[1][rows:], ours[1][rows:], atol=SAME * np.abs(ours[1]).max()
        )
    assert {Status.SOLVED, Status.INFEASIBLE, Status.BAD_INPUT} <= seen
    assert usual >= 980
