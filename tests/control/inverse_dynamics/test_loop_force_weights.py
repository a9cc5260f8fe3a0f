"""Forces of loops in the cost: the optimum with all multipliers, measured forces, C, bad input."""

import numpy as np
import pytest
from loop_force_problem import (
    MECHANISMS,
    agrees,
    equal_stiffness,
    law_of,
    loads_weight,
    optimum,
    reference,
    states,
)

import mbcasadi as mb
from mbcasadi.codegen import export_c
from mbcasadi.control import (
    ForceFeedback,
    InverseDynamicsQP,
    LoadSharing,
    LoopForceWeights,
    PostureTask,
)
from mbcasadi.errors import ProblemError, UnknownNameError

UNLIMITED = np.array([[-np.inf, np.inf]])
TRUSS = """
<mujoco>
  <option timestep="0.001"/>
  <worldbody>
    <body name="left"><joint name="left" axis="0 1 0" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 .3 0 -.1" size=".02" mass="1" contype="0"/></body>
    <body name="right" pos=".6 0 0"><joint name="right" axis="0 1 0" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 -.3 0 -.1" size=".02" mass="1" contype="0"/></body>
  </worldbody>
  <equality><connect name="pin" body1="left" body2="right" anchor=".3 0 -.1"/></equality>
  <actuator><motor joint="left" ctrlrange="-30 30"/><motor joint="right" ctrlrange="-30 30"/>
  </actuator>
</mujoco>
"""


@pytest.mark.parametrize("name", MECHANISMS)
def test_forces_in_the_cost_have_the_optimum_of_the_problem_with_all_multipliers(name):
    build, joints = MECHANISMS[name]
    system, rng = build(), np.random.default_rng(8)
    names = [equality.name for equality in system.equalities]
    weights = rng.uniform(0.0, 2.0, system.nc) * (rng.uniform(size=system.nc) < 0.7)
    weights[0] = 1.0
    by_name = dict(zip(names, weights.reshape(len(names), -1), strict=True))
    preload = rng.standard_normal(system.nc)
    loads = dict(zip(names, preload.reshape(len(names), -1), strict=True))
    law = law_of(
        (system, joints),
        sharing=LoadSharing(stiffness=equal_stiffness(system), preload=loads),
        loop_force_weights=LoopForceWeights(by_name),
        force_reference=True,
        torque_weight=1e-3,
        internal_force_weight=1e-3,
    )
    plain = law_of((system, joints))
    own, moved = law.reference_slices["loop_force"], 0.0
    for q, v in states(system, rng, 10):
        ref, parts = reference(plain, q, rng)
        wanted = np.zeros(system.nc)
        wanted[weights > 0] = rng.standard_normal(np.sum(weights > 0))
        whole = np.zeros(law.nref)
        whole[: ref.size], whole[own] = ref, wanted[weights > 0]
        solution = law.solve(q, v, whole)
        assert solution.status == 0
        limits = np.repeat(UNLIMITED, system.nc, axis=0)
        cost = *loads_weight(law), (weights, wanted), preload
        agrees(solution, optimum(law, q, v, parts, limits, *cost))
        moved = max(moved, np.abs(solution.lam - law.solve(q, v, whole * 0.9).lam).max())
    assert moved > 1e-3


def tensioned(feedback=None, **options):
    """Return the law of two pinned bars, which cannot move: their motors load the pin."""
    return InverseDynamicsQP(
        mb.read_mjcf(TRUSS),
        [PostureTask(["left"])],
        loop_force_weights=LoopForceWeights({"pin": [1.0, 0.0, 1.0]}),
        force_reference=True,
        force_feedback=feedback,
        delay=1,
        name="tensioned",
        **options,
    )


FEEDBACK = ForceFeedback(limit=20.0, gain=20.0)
ASKED = np.array([25.0, -4.0])


def asked(law):
    ref = law.reference_at(np.zeros(2))
    ref[law.reference_slices["loop_force"]] = ASKED
    return ref


@pytest.mark.parametrize(("feedback", "off"), [(FEEDBACK, 0.05), (None, 0.5)])
def test_a_pin_carries_what_is_asked_for_in_mujoco(feedback, off):
    law = tensioned(feedback)
    ref = asked(law)
    report = mb.validate(
        law, TRUSS, 1.0, reference=ref, q0=np.zeros(2), delay=1, perturb={"mass": 0.5}
    )
    recording = report.runs[0].recording
    assert np.all(recording.status == 0)
    error = np.abs(recording.f_measured[-1] - ASKED).max()
    assert error < off if feedback else error > off


def test_the_generated_c_is_the_function(tmp_path):
    law = tensioned(FEEDBACK)
    names = law.controller.inputs[2].name, law.controller.inputs[2].components
    assert names == ("f_measured", ("pin.x", "pin.z"))
    compiled = export_c(law, tmp_path / "law").load()
    rng, ours, theirs = np.random.default_rng(9), law.z0, law.z0
    for mask in [1.0] * 20 + [0.0] * 3:
        given = {"q": np.zeros(2), "v": 0.01 * rng.standard_normal(2), "mask": [mask]}
        given |= {"f_measured": ASKED + rng.standard_normal(2), "ref": asked(law)}
        first, second = law.function(**given, z=ours), compiled(**given, z=theirs)
        ours, theirs = first["z_next"], second["z_next"]
        assert float(first["status"]) == float(second["status"]) == 0
        for name in ("u", "z_next"):
            np.testing.assert_allclose(second[name], first[name], rtol=1e-7, atol=1e-7)
    places = [name.startswith("force_integral") for name in law.controller.inputs[-1].components]
    assert np.all(np.array(ours).ravel()[places] == 0)  # the pin is off


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"pn": 1.0}, "equality constraint 'pn'"),
        ({"pin": [1.0, 2.0]}, "or 3 of them"),
        ({"pin": -1.0}, "not negative"),
        ({"pin": 0.0}, "one that is positive"),
    ],
)
def test_weights_that_fit_no_loop_are_refused(weights, words):
    with pytest.raises((ProblemError, UnknownNameError), match=words):
        InverseDynamicsQP(
            mb.read_mjcf(TRUSS),
            [PostureTask(["left"])],
            loop_force_weights=LoopForceWeights(weights),
        )


def test_levels_do_not_know_weights_of_loop_forces():
    with pytest.raises(ProblemError, match="weights of loop forces"):
        tensioned(levels=[["posture"]])
