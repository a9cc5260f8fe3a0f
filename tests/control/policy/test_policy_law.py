"""A policy in front of a law: what the law is given, when, and that the C has it too."""

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask, with_policy
from mbcasadi.errors import ProblemError

EVERY = 3


@pytest.fixture(scope="module")
def law():
    system = mb.read_mjcf(mb.models.path("four_bar"))
    return InverseDynamicsQP(system, [PostureTask(("crank",), kp=100.0)], period=0.002)


@pytest.fixture(scope="module")
def policy(law):
    """A small network that moves the reference: of its own command, and of the state."""
    rng = np.random.default_rng(0)
    q, v, ref = (ca.MX.sym(n, law.function.numel_in(n)) for n in ("q", "v", "ref"))
    command = ca.MX.sym("command", 2)
    hidden = ca.tanh(ca.DM(rng.normal(size=(8, 8))) @ ca.vertcat(q, v, command))
    given = ref + ca.DM(rng.normal(size=(3, 8))) @ hidden
    return ca.Function(
        "net", [q, v, ref, command], [given], ["q", "v", "ref", "command"], ["law_ref"]
    )


@pytest.fixture(scope="module")
def commanded(law, policy):
    return with_policy(law, policy, every=EVERY)


def states(law, ticks):
    rng = np.random.default_rng(1)
    return [
        {
            "q": rng.normal(0, 0.05, 3),
            "v": rng.normal(0, 0.2, 3),
            "ref": rng.normal(0, 0.1, law.function.numel_in("ref")),
            "mask": [1.0],
            "command": rng.normal(size=2),
        }
        for _ in range(ticks)
    ]


def test_the_law_does_what_it_would_with_the_reference_of_the_policy(law, policy, commanded):
    """Also where the policy is asked every third tick, and its output held between."""
    z, own, ref, moved = commanded.controller.z0, law.controller.z0, None, False
    for k, state in enumerate(states(law, 8)):
        if k % EVERY == 0:
            ref = policy(**{n: state[n] for n in policy.name_in()})["law_ref"]
        whole = commanded.function(**state, z=z)
        inputs = {n: state[n] for n in law.function.name_in() if n in state} | {"ref": ref}
        alone = law.function(**inputs, z=own)
        unmoved = law.function(**inputs | {"ref": state["ref"]}, z=own)
        for name in ("u", "status", "flags", "residual"):
            assert np.array_equal(whole[name].full(), alone[name].full()), name
        moved |= abs(float(unmoved["u"][0] - alone["u"][0])) > 1e-3
        z, own = whole["z_next"], alone["z_next"]
    assert moved


def test_the_generated_c_is_the_function_whatever_the_policy_gives(law, commanded, tmp_path):
    """A command that is no number gives the safe output, and the tick after it is well."""
    c = mb.export_c(commanded, tmp_path / "c").load()
    z = zc = commanded.controller.z0
    inputs = states(law, 7)
    inputs[EVERY]["command"] = [np.nan, 0.0]
    inputs[EVERY + 1]["command"] = [1e300, 0.0]
    statuses = []
    for state in inputs:
        whole, compiled = commanded.function(**state, z=z), c(**state, z=zc)
        assert np.abs(np.array(whole["u"] - compiled["u"])).max() < 1e-9
        assert float(whole["status"]) == float(compiled["status"])
        statuses.append(int(whole["status"]))
        z, zc = whole["z_next"], compiled["z_next"]
        assert np.all(np.isfinite(np.array(zc)))
    assert statuses[EVERY] in commanded.controller.safe_statuses
    assert [s for k, s in enumerate(statuses) if k != EVERY] == [0] * 6


@pytest.mark.parametrize("wild", [np.nan, np.inf, 1e300, -7.0, 1.5, 2.0])
def test_a_wild_memory_of_the_policy_is_asked_anew_or_held_and_leaves_nothing(
    law, policy, commanded, wild
):
    """A tick outside its range, and numbers that no law takes, are those of a start."""
    (state,) = states(law, 1)
    z = commanded.controller.z0.copy()
    z[:4] = wild  # the tick, and a reference that is held
    out = commanded.function(**state, z=z)
    held = 1 <= wild < EVERY
    ref = np.full(3, wild) if held else policy(**{n: state[n] for n in policy.name_in()})["law_ref"]
    inputs = {n: state[n] for n in law.function.name_in() if n in state} | {"ref": ref}
    alone = law.function(**inputs, z=law.controller.z0)
    assert np.array_equal(out["u"].full(), alone["u"].full())
    assert float(out["status"]) == 0
    assert np.all(np.isfinite(out["z_next"].full()))


@pytest.mark.long
def test_it_runs_in_a_loop_with_the_monitor_of_the_law(law):
    """A policy of time alone draws what the reference of the law would."""
    t = ca.MX.sym("t")
    given = ca.vertcat(0.2 * ca.sin(3 * t), 0.6 * ca.cos(3 * t), -1.8 * ca.sin(3 * t))
    drawn = ca.Function("drawn", [t], [given], ["t"], ["law_ref"])
    report = mb.validate(
        with_policy(law, drawn), mb.models.path("four_bar"), 2.0, q0=[0.0, 0.0, 0.0],
        report=mb.validation.ReportOptions(explain=False),
    )  # fmt: skip
    run = report.runs[0]
    late = run.recording.t > 1.0
    crank = run.recording.q[late, 0]
    assert np.abs(crank - 0.2 * np.sin(3 * run.recording.t[late])).max() < 2e-3
    assert {"target", "error"} <= run.recording.monitor.keys()


def test_numbers_and_contacts_are_commanded_too():
    system = mb.read_mjcf(mb.models.path("quadruped"))
    feet = [mb.Contact(name, friction=0.6) for name in ("FL", "FR", "RL", "RR")]
    tasks = [FrameTask("trunk", kind="body", kp=100.0), PostureTask(kp=10.0, weight=0.01)]
    law = InverseDynamicsQP(system, tasks, feet, period=0.002, tunable=("gains",))
    lifted = ca.MX.sym("lifted")
    sizes = {n: law.function.numel_in(n) for n in ("tuning", "mask")}
    values = [ca.repmat(50.0 + lifted, sizes["tuning"]), ca.vertcat(lifted, 1, 1, 1)]
    whole = with_policy(
        law, ca.Function("p", [lifted], values, ["lifted"], [f"law_{n}" for n in sizes])
    ).controller
    names = whole.function.name_in()
    assert "tuning" not in names
    assert "mask" not in names
    q = np.array(system.tree.keyframes["stand"], dtype=float)
    state = {"q": q, "v": np.zeros(18), "ref": law.reference_at(q)}
    for on in (0.0, 1.0):
        found = whole.function(**state, lifted=on, z=whole.z0)
        inputs = {"tuning": np.full(sizes["tuning"], 50.0 + on), "mask": [on, 1, 1, 1]}
        alone = law.function(**state, **inputs, z=law.controller.z0)
        np.testing.assert_allclose(found["u"], alone["u"], rtol=0, atol=1e-12)


def test_what_does_not_fit_is_refused_in_one_message(law):
    x, y = ca.MX.sym("x", 4), ca.MX.sym("y", 2)
    wrong = ca.Function("wrong", [x, y], [x, y], ["q", "status"], ["law_ref", "speed"])
    with pytest.raises(ProblemError) as refused:
        with_policy(law, wrong)
    for words in (
        "expected some of law_ref, law_mask",
        "q has 4 numbers, expected 3",
        "reads status",
    ):
        assert words in str(refused.value)
    with pytest.raises(ProblemError, match="every"):
        with_policy(law, ca.Function("p", [x], [x[:3]], ["x"], ["law_ref"]), every=0)
