"""Reactions: what is measured changes mask and reference; a force is that of the last step."""

import pickle

import casadi as ca
import mujoco
import numpy as np
import pytest
from support.bare_node import remove_compiler

import mbcasadi as mb
from mbcasadi.description import Contact, Controller, Signal
from mbcasadi.errors import ProblemError, ShapeError
from mbcasadi.validation import ScenarioOptions, Trial, compile_controller, reaction
from mbcasadi.validation.campaigns.kit import sampled_trial
from mbcasadi.validation.campaigns.shipping import to_bytes
from mbcasadi.validation.trial_report import run_trial

H, KP, KD = 2e-3, 4000.0, 400.0
PLUNGER = f"""
<mujoco>
  <option timestep="{H}" integrator="implicitfast" gravity="0 0 0"/>
  <worldbody><geom name="wall" type="plane" size="1 1 1" zaxis="-1 0 0" pos=".1 0 0"/>
    <body name="rod"><joint name="x" type="slide" axis="1 0 0"/>
      <geom name="end" size=".05" mass="2"/><site name="tip" pos=".05 0 0"/></body></worldbody>
  <actuator><general joint="x" biastype="affine" gainprm="{KP}" biasprm="0 -{KP} -{KD}"/></actuator>
</mujoco>
"""
FORCE = 15.0  # N


def ramp_law():
    """Return a law without a state: its set-point is its reference, where its mask is on."""
    sizes = {"q": 1, "v": 1, "f_measured": 3, "ref": 1, "mask": 1}
    given = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    u = given["ref"] * given["mask"]
    function = ca.Function("ramp", list(given.values()), [u], list(given), ["u"])
    return Controller(
        name="ramp",
        function=function,
        inputs=tuple(
            Signal(name, tuple(f"{name}{k}" for k in range(size)), ("",) * size)
            for name, size in sizes.items()
        ),
        outputs=(Signal("u", ("u",), ("",)),),
        u_min=np.array([-9.0]),
        u_max=np.array([9.0]),
        z0=np.zeros(0),
        period=H,
        contacts=(Contact("tip", normal=(-1, 0, 0)),),
    )


@pytest.fixture(scope="module")
def ramp():
    with compile_controller(ramp_law()) as law:
        yield law


def setpoint(t):
    return [0.2 * t]


def test_the_measured_force_is_the_one_that_acted_in_the_last_step(ramp):
    """The servo's force jumps with each set-point: what it would be before is never exerted."""
    run = mb.validate(ramp, PLUNGER, 0.6, reference=setpoint).runs[0].recording
    model = mujoco.MjModel.from_xml_string(PLUNGER)
    data, forces = mujoco.MjData(model), [0.0]
    for k in range(run.ticks - 1):
        data.ctrl[:] = setpoint(k * H)
        mujoco.mj_step(model, data)
        forces.append(-data.qfrc_constraint[0])
    assert max(forces) > FORCE
    np.testing.assert_allclose(run.f_measured[:, 0], forces, atol=1e-9)


def test_a_reaction_changes_what_is_scheduled_by_what_is_measured(ramp, monkeypatch):
    """Once the wall is felt, the set-point stays for good; what has no output is as scheduled."""
    names = ("f_measured", "scheduled_ref", "z")
    force, ref, z = (ca.SX.sym(n, 3 if n == "f_measured" else 1) for n in names)
    felt = ca.if_else(ca.logic_and(force[0] > FORCE, z == 0), ref, z)
    function = ca.Function(
        "stops", [force, ref, z], [ca.if_else(felt > 0, felt, ref), felt], list(names),
        ["ref", "z_next"],
    )  # fmt: skip
    free = mb.validate(ramp, PLUNGER, 0.6, reference=setpoint).runs[0].recording
    with reaction(function, [0.0]) as stops:
        for _ in range(2):  # each run starts from z0
            options = ScenarioOptions(reaction=stops)
            report = mb.validate(ramp, PLUNGER, 0.6, reference=setpoint, scenario=options)
            run = report.runs[0].recording
            k = int(np.flatnonzero(free.f_measured[:, 0] > FORCE)[0])
            assert 0 < k < run.ticks - 10
            np.testing.assert_array_equal(run.ref[:k], free.ref[:k])
            np.testing.assert_array_equal(run.ref[k:], np.full_like(run.ref[k:], setpoint(k * H)))
            assert np.all(run.mask == 1)
        sent = to_bytes(
            sampled_trial(Trial(0.6, reference=setpoint, scenario=options), H), libraries=True
        )
    with monkeypatch.context() as bare_node:
        remove_compiler(bare_node)
        received = pickle.loads(sent)
    again = run_trial(ramp, PLUNGER, received).runs[0].recording
    np.testing.assert_array_equal(again.q, run.q)  # as a worker of a campaign gets it


def test_what_is_no_reaction_is_refused():
    x = ca.SX.sym("x")
    for names, message in (
        (["force", "mask"], r"inputs \['force'\]"),
        (["q", "torque"], r"outputs \['torque'\]"),
        (["z", "mask"], "both or none"),
    ):
        function = ca.Function("wrong", [x], [2 * x], names[:1], names[1:])
        with pytest.raises(ProblemError, match=message), reaction(function, [0.0]):
            pass
    function = ca.Function("counts", [x], [x + 1], ["z"], ["z_next"])
    with pytest.raises(ShapeError, match="z0"), reaction(function, [0.0, 1.0]):
        pass
    with pytest.raises(ProblemError, match="reaction"):
        ScenarioOptions(reaction=function)
