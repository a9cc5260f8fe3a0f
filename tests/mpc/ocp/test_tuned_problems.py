"""Numbers of a problem that change at run time: the same as a problem with these numbers."""

import numpy as np
import pytest
from support.mpc_mechanisms import cart_pole

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.codegen import export_c
from mbcasadi.control import FrameTask, JointLimits
from mbcasadi.description.status import Status
from mbcasadi.errors import ProblemError, UnknownNameError

ALL = ("weights", "gains", "friction", "limits")
SAME = 1e-6  # of controls of some N: the tolerance of all solutions
SYSTEM = cart_pole(limit=8.0)
OTHER = {
    "Q.q.q_0": 9.0,
    "Q_end.v.q_1": 4.0,
    "R.u0": 0.05,
    "S.u0": 0.03,
    "q.q_0.upper": 0.25,
    "du.u0.lower": -2.0,
    "du.u0.upper": 2.5,
}


def swing(other=False, tunable=()):
    """Return a cart-pole with bounds of everything; with the numbers of OTHER."""
    Q, Q_end = np.array([3.0, 30.0, 0.1, 0.1]), np.array([30.0, 300.0, 1.0, 1.0])
    du, q, costs = [[-5.0, 5.0]], np.array([[-0.6, 0.6], [-9.0, 9.0]]), {"R": [1e-2], "S": [1e-2]}
    if other:
        Q[0], Q_end[3], q[0, 1] = 9.0, 4.0, 0.25
        du, costs = [[-2.0, 2.5]], {"R": [0.05], "S": [0.03]}
    parts = [mpc.Cost(Q=Q, Q_end=Q_end, **costs), mpc.StageBounds(du=du, q=q)]
    return mpc.optimal_control_problem(SYSTEM, 8, 0.05, parts, tunable=tunable)


def run(law, z, ref, ticks=6, **given):
    """Return the controls of some ticks from one state, and the last status."""
    controls = []
    for _ in range(ticks):
        sol = law(q=[0.0, 0.4], v=[0.3, -0.2], ref=ref, z=z, **given)
        z = sol["z_next"]
        controls.append(float(sol["u"]))
    return np.array(controls), int(sol["status"])


DAQP = pytest.param("daqp", marks=pytest.mark.long)


@pytest.fixture(scope="module", params=[DAQP, "stagewise"])
def laws(request, tmp_path_factory):
    """Return the tunable iteration, its C, and the one that is made with other numbers."""
    solver = request.param
    tuned = mpc.real_time_iteration(swing(tunable=ALL), solver=solver)
    project = export_c(tuned, tmp_path_factory.mktemp("tuned") / "c")
    made = mpc.real_time_iteration(swing(other=True), solver=solver)
    return tuned, project.load(), made


def test_a_tuned_iteration_is_that_of_a_problem_with_these_numbers(laws):
    tuned, in_c, made = laws
    ref = {"setpoint_q": [0.3, np.pi]}
    expected, status = run(made.function, made.controller.z0, made.reference(**ref))
    assert status == Status.SOLVED
    tuning = tuned.ocp.tuned(OTHER)
    for law in (tuned.function, in_c):
        actual, status = run(law, tuned.controller.z0, tuned.reference(**ref), tuning=tuning)
        assert status == Status.SOLVED
        np.testing.assert_allclose(actual, expected, atol=10 * SAME)
    default = tuned.controller.default_tuning
    plain, _ = run(tuned.function, tuned.controller.z0, tuned.reference(**ref), tuning=default)
    assert np.abs(plain - expected).max() > 0.1


def test_bad_numbers_are_bad_input(laws):
    tuned, in_c, _ = laws
    z, ref = tuned.controller.z0, tuned.reference()
    names = [entry.name for entry in tuned.ocp.tuning]
    for name, value in (
        ("R.u0", np.nan),
        ("Q.q.q_0", -1.0),
        ("q.q_0.upper", -0.7),  # below the lower one
        ("du.u0.lower", np.inf),
    ):
        tuning = tuned.controller.default_tuning.copy()
        tuning[names.index(name)] = value
        for law in (tuned.function, in_c):
            u, status = run(law, z, ref, ticks=1, tuning=tuning)
            assert status == Status.BAD_INPUT, name
            assert np.all(np.isfinite(u))
    assert tuned.solve([0, 0], [0, 0], tuning={"R.u0": 0.2}).status == Status.SOLVED
    with pytest.raises(UnknownNameError, match=r"'R.u1'.*R.u0"):
        tuned.solve([0, 0], [0, 0], tuning={"R.u1": 0.2})


def test_entries_have_names_defaults_and_units_and_nothing_is_there_unless_asked_for():
    plain, tuned = swing(), swing(tunable=("weights",))
    assert not plain.tuning
    assert plain.np_ == plain.n_ref == tuned.n_ref
    assert "tuning" not in mpc.real_time_iteration(plain).function.name_in()
    defaults = {entry.name: entry.default for entry in tuned.tuning}
    assert defaults["Q.q.q_1"] == 30.0
    assert [*defaults][-1] == "Q_end.v.q_1"
    p = plain.parameters(setpoint_q=[0.1, 0.2])
    np.testing.assert_array_equal(tuned.parameters(setpoint_q=[0.1, 0.2])[:, : plain.np_], p)
    solved = [
        mpc.solve_ocp(each, [0.0, 0.2, 0, 0, 0], p=each.parameters(**given))
        for each, given in (
            (swing(other=True), {}),
            (swing(tunable=ALL), {"tuning": swing(tunable=ALL).tuned(OTHER)}),
        )
    ]
    np.testing.assert_allclose(solved[1].u, solved[0].u, atol=1e-5)


def test_a_matrix_is_tuned_by_a_factor():
    Q = np.eye(4) + 0.3
    made, tuned = (
        mpc.optimal_control_problem(SYSTEM, 3, 0.05, [mpc.Cost(Q=W, R=[1.0])], tunable=t)
        for W, t in ((2.5 * Q, ()), (Q, ("weights",)))
    )
    x, u, p = np.arange(4.0), [0.7], made.parameters()[0]
    of_tuned = tuned.parameters(tuning=tuned.tuned({"Q.factor": 2.5}))[0]
    cost = [
        float(np.sum(o.residual(x, u, at).full() ** 2)) for o, at in ((made, p), (tuned, of_tuned))
    ]
    assert cost[1] == pytest.approx(cost[0], rel=1e-12)


def quadruped(friction=0.6, speed=6.0, kp=100.0, tunable=()):
    """Return a quadruped with cones, joint limits, a plane and a task."""
    system = mb.read_mjcf(models.path("quadruped"))
    stand = system.tree.keyframes["stand"]
    feet = [
        mb.Contact("FL", friction=friction),
        mb.Contact("RR", friction=friction, cone="quadratic"),
    ]
    touching = mb.with_contacts(system, feet, stand).with_mask()
    parts = [
        mpc.ContactCones(feet),
        mpc.Cost(R=np.ones(12)),
        FrameTask("trunk", kind="body", kp=kp),
        JointLimits(velocity=speed),
    ]
    return mpc.optimal_control_problem(
        touching, 2, 0.02, parts, step=mpc.SemiImplicitStep(), tunable=tunable
    )


@pytest.mark.long
def test_friction_gains_and_joint_limits_are_those_of_a_problem_with_these_numbers():
    made, tuned = quadruped(0.4, 4.0, 50.0), quadruped(tunable=ALL)
    names = [entry.name for entry in tuned.tuning]
    values = {name: 0.4 for name in names if name.endswith("friction")}
    values |= {name: 4.0 for name in names if name.endswith("speed")}
    gains = [name for name in names if ".kp." in name or ".kd." in name]
    values |= {name: 50.0 if ".kp." in name else 2 * 50.0**0.5 for name in gains}
    assert len(values) > 10
    rng = np.random.default_rng(0)
    x = np.concatenate([made.system.tree.keyframes["stand"], 0.3 * rng.normal(size=18)])
    u, p = rng.normal(size=12), made.parameters()[0]
    at = tuned.parameters(tuning=tuned.tuned(values))[0]
    np.testing.assert_allclose(tuned.residual(x, u, at), made.residual(x, u, p), atol=1e-9)
    outside = [
        np.maximum(np.array(o.path(x, u, p)).ravel() - o.path_bounds[:, 1], 0)
        + np.maximum(o.path_bounds[:, 0] - np.array(o.path(x, u, p)).ravel(), 0)
        > 0
        for o, p in ((made, p), (tuned, at))
    ]
    assert len(outside[1]) >= 9
    violated = [
        {name for name, out in zip(o.names("path"), each, strict=True) if out}
        for o, each in zip((made, tuned), outside, strict=True)
    ]
    assert violated[0] == violated[1]
    assert {"cone of FL[0]", "cone of RR"} & violated[0]


def test_what_cannot_be_tuned_is_refused():
    with pytest.raises(ProblemError, match=r"'speed'.*'weights', 'gains'"):
        swing(tunable=("speed",))
    with pytest.raises(ProblemError, match="no part has such numbers"):
        swing(tunable=("friction",))
    twice = [mpc.Cost(R=[1.0]), mpc.Cost(R=[2.0])]
    with pytest.raises(ProblemError, match=r"two tunable numbers are named 'R.u0'"):
        mpc.optimal_control_problem(SYSTEM, 3, 0.05, twice, tunable=("weights",))
    tuned = swing(tunable=ALL)
    with pytest.raises(ProblemError, match=r"'R.u0' = -1; expected a number from 0"):
        tuned.tuned({"R.u0": -1.0})
    with pytest.raises(ProblemError, match=r"'q.q_0.lower' = 1 and 'q.q_0.upper' = 0.6"):
        tuned.tuned({"q.q_0.lower": 1.0})
    with pytest.raises(ProblemError, match="an input of its own"):
        mpc.real_time_iteration(tuned).reference(tuning=tuned.tuned({}))
