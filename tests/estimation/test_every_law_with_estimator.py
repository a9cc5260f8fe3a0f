"""Any law with any estimator: what its parts do one after the other, and what is refused."""

import subprocess
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from support.emergency_problems import ARM, made
from support.tripod import MODEL, PERIOD, START, standing, tripod
from support.two_rates_problems import EVERY, FAILED, FAST, SOLVED, two_rates

import mbcasadi as mb
from mbcasadi.codegen.law_of_controller import law_from_controller
from mbcasadi.control import ForceFeedback, FrameTask, InverseDynamicsQP, LawOptions, PostureTask
from mbcasadi.control.regulators import lqr
from mbcasadi.description import Signal
from mbcasadi.description.safe_command import safe_command
from mbcasadi.description.status import Flag
from mbcasadi.errors import ProblemError
from mbcasadi.estimation import (
    Estimator,
    FootLoad,
    Measured,
    contact_probability,
    manifold_filter,
    momentum_observer,
    residual_forces,
    with_estimator,
)
from mbcasadi.mpc import optimal_control_problem, real_time_iteration
from mbcasadi.mpc.ocp.cost import Cost

QUICK = ("-O0",)


def flat(x):
    return np.array(x, dtype=float).ravel()


def signal(name, size):
    return Signal(name, tuple(f"{name}{i}" for i in range(size)), ("",) * size)


def told(nq, nv, period, names=None):
    """Return an estimator that is told q, v as y, and counts its ticks; u comes back as `acted`."""
    y, valid, u = ca.SX.sym("y", nq + nv), ca.SX.sym("valid"), ca.SX.sym("u", 2)
    dt, z = ca.SX.sym("dt"), ca.SX.sym("z", 1)
    status = ca.if_else(valid > 0.5, 0, 3)
    outputs = {
        "q": y[:nq],
        "v": y[nq:],
        "acted": u,
        "z_next": z + 1,
        "covariance": dt * ca.SX.eye(2),
    }
    outputs |= {"status": status, "flags": Flag.GATED * (z == 3), "residual": ca.SX(0)}
    inputs = {"y": y, "valid": valid, "u": u, "dt": dt, "z": z}
    measured, found = ([signal(k, x.numel()) for k, x in d.items()] for d in (inputs, outputs))
    named = [replace(s, components=names) if s.name in "qv" and names else s for s in found]
    f = ca.Function("told", [*inputs.values()], [*outputs.values()], [*inputs], [*outputs])
    return Estimator("told", f, tuple(measured), tuple(named), (), np.zeros(1), period)


LEVELS = {"levels": [["a"], ["rest"]]}


def arm_law(kind):
    if kind == "levels":
        tasks = [PostureTask(name="a", joints=["a"], kp=50.0), PostureTask(name="rest", kp=50.0)]
        return InverseDynamicsQP(mb.read_mjcf(ARM), tasks, **LEVELS).controller
    if kind == "stagewise":
        ocp = optimal_control_problem(
            mb.read_mjcf(ARM), 3, 0.01, [Cost(Q=np.ones(4), R=[1.0, 1.0])]
        )
        return real_time_iteration(ocp, solver="stagewise").controller
    return made(kind)


@pytest.mark.parametrize("kind", ["qp", "law", "rti", "levels", "stagewise", "foreign"])
def test_every_kind_of_law_does_with_an_estimator_what_it_does_alone(kind):
    law = arm_law(kind)
    names = ("a", "b") if kind != "foreign" else None
    whole = with_estimator(law, told(2, 2, law.period, names), delay=1).controller
    assert whole.contract_violation() == ""
    law_from_controller(whole, None, "mbcasadi")  # raises where its stages do not fit
    rng, f = np.random.default_rng(0), whole.function
    z, own, acted = whole.z0, law.z0, [safe_command(law)] * 2
    for k in range(6):
        q, v = np.array([0.4, -0.7]) + 0.1 * rng.standard_normal(2), 0.1 * rng.standard_normal(2)
        y = np.concatenate([q, v])
        out = f(y=y, valid=1, z=z)
        state = {"q": q, "v": v, "z": own}
        alone = law.function(**{n: x for n, x in state.items() if n in law.function.name_in()})
        for name in {"u", "status", "residual"} & set(alone):
            assert flat(out[name]) == pytest.approx(flat(alone[name]), abs=1e-9), name
        assert flat(out["acted"]) == pytest.approx(acted[-1]), "u of two ticks ago"
        acted = [flat(out["u"]), acted[0]]
        z, own = out["z_next"], alone.get("z_next", own)
        assert int(out["flags"]) & Flag.GATED == Flag.GATED * (k == 3)
    if kind != "foreign":
        assert np.ptp(acted) > 1e-3


def test_the_float_program_agrees_with_the_record_in_double(tmp_path):
    law = made("qp")
    whole = with_estimator(law, told(2, 2, law.period, ("a", "b"))).controller
    given = {"y": [0.4, -0.7, 0, 0], "ref": [0.5, -0.6, 0, 0, 0, 0]}
    project = mb.export_c(whole, tmp_path / "out", real="float", example=given)
    program = project.build_example(flags=QUICK).path
    said = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    assert "1000 ticks, u equals the record; the last tick returned 0" in said


def plain(f):
    """Return a Function of one input and u as a controller."""
    signals = (Signal(f.name_in(0), (), ()),), (Signal("u", (), ()),)
    return mb.Controller("plain", f, *signals, -np.ones(2), np.ones(2), np.zeros(0), 1e-3)


def test_a_law_without_a_guard_is_guarded():
    q = ca.SX.sym("q", 2)
    f = ca.Function("law", [q], [10 * q], ["q"], ["u"])
    limits = np.array([1.0, 1.0])
    law = mb.Controller(
        "plain",
        f,
        (Signal("q", (), ()),),
        (Signal("u", (), ()),),
        -limits,
        limits,
        np.zeros(0),
        1e-3,
    )
    whole = with_estimator(law, told(2, 2, 1e-3), blind=2e-3).controller
    z, out = whole.z0, {}
    for valid, status, u in (
        (1, 0, [1, -0.5]),
        (0, 0, [1, -0.5]),
        (0, 0, [1, -0.5]),
        (0, 3, [0, 0]),
    ):
        out = whole.function(y=[3, -0.05, 0, 0], valid=valid, z=z)
        z = out["z_next"]
        assert int(out["status"]) == status
        assert flat(out["u"]) == pytest.approx(u)
    assert int(out["flags"]) & Flag.UNSURE
    assert int(out["estimate_status"]) == 3


def test_observers_run_behind_the_estimate():
    """The residual of the momentum gives forces of feet; their probability is the next mask."""
    system, feet = tripod()
    law = InverseDynamicsQP(
        system, [FrameTask("trunk", kp=100.0, kind="body")], feet, period=PERIOD,
        force_feedback=ForceFeedback(20.0), force_weight=1e-6, force_reference=True,
    )  # fmt: skip
    estimator, load = standing()[1], FootLoad(20.0, 8.0)
    observers = [
        momentum_observer(system, gain=50.0, rate_noise=1e-2, force_noise=0.1, period=PERIOD),
        residual_forces(system, feet),
        contact_probability(system, feet, residual=load),
    ]
    whole = with_estimator(law, estimator, observers=observers)
    f, y, ref, on = whole.function, estimator.y0, law.reference_at(START), np.ones(3)
    assert "f_measured" not in f.name_in()
    z, z_o, z_p, mask = whole.controller.z0, np.zeros(observers[0].numel_in("z")), np.zeros(6), on
    own, z_e, u = law.z0, estimator.z0, safe_command(law.controller)
    for _ in range(30):
        out = f(y=y, ref=ref, mask=on, z=z)
        found = estimator.function(y=y, valid=np.ones(4), mask=mask, dt=PERIOD, z=z_e)
        state = {"q": found["q"], "v": found["v"]}
        seen = observers[0](**state, u=u, dt=PERIOD, z=z_o)
        forces = observers[1](found["q"], seen["residual"])
        stands = observers[2](schedule=on, q=found["q"], residual=seen["residual"], z=z_p)
        alone = law.function(**state, f_measured=forces, ref=ref, mask=on, z=own)
        assert flat(out["f"]) == pytest.approx(flat(forces), abs=1e-9)
        assert flat(out["u"]) == pytest.approx(flat(alone["u"]), abs=1e-9)
        assert flat(out["q"]) == pytest.approx(flat(found["q"]), abs=1e-12)
        z, z_o, z_p, z_e = out["z_next"], seen["z_next"], stands["z_next"], found["z_next"]
        own, mask, u = alone["z_next"], flat(stands["probability"]), flat(out["u"])
    assert flat(forces)[0] > 1, "feet that carry"
    assert 1e-6 < np.abs(mask - 1).max() < 0.5, "a probability, not the schedule"
    assert "momentum_observer_residual" in f.name_out()


def test_a_plan_begins_with_the_estimate_of_the_last_tick(tmp_path):
    parts = two_rates(1, "by_hand")
    r = parts.references
    s = {n: ca.MX.sym(n, r.sparsity_in(n)) for n in r.name_in()}
    ref, z_next = r.call([*s.values()])
    asked = {"first_q": s["q"], "first_v": s["v"], "ref": ref, "z_next": z_next}
    references = ca.Function("references", [*s.values()], [*asked.values()], [*s], [*asked])
    parts, estimator = replace(parts, references=references), told(2, 2, FAST)
    with pytest.raises(ProblemError, match="takes u of 2 controls"):
        with_estimator(parts, estimator)
    estimator = without_u(estimator)
    with pytest.raises(ProblemError, match="references do not give"):
        with_estimator(two_rates(), estimator)
    both = with_estimator(parts, estimator)
    run = mb.export_two_rates(both, tmp_path / "out").load(flags=QUICK)
    assert run.plan(None, None, [1.0], 0.0)["code"] == SOLVED, "from the start, before any tick"
    for k in range(2 * EVERY):
        out = run.tick(None, None, k * FAST, {"y": [k, 0, 3 * k, 0], "sample_age": [0.1]})
        assert out["q"][0] == k
    assert run.plan(None, None, [1.0], 0.1)["code"] == SOLVED
    run.tick(None, None, 0.2, {"y": [0, 0, 150, 0]})
    assert run.plan(None, None, [1.0], 0.2)["code"] == FAILED, "v of the last tick"


def without_u(estimator):
    """Return an estimator without the input u, with one that says how old a sample is."""
    f = estimator.function
    s = {n: ca.SX.sym(n, f.sparsity_in(n)) for n in f.name_in() if n != "u"}
    found = f(**s, u=0)
    s = {"y": s.pop("y"), "age": ca.SX.sym("age"), **s}
    kept = {n: x for n, x in found.items() if n != "acted"}
    signals = [Signal("age", ("age",), ("s",)), *(x for x in estimator.inputs if x.name != "u")]
    ordered = tuple(next(x for x in signals if x.name == n) for n in s)
    return replace(
        estimator,
        function=ca.Function("told", [*s.values()], [kept[n] for n in kept], [*s], [*kept]),
        inputs=ordered,
        outputs=tuple(x for x in estimator.outputs if x.name != "acted"),
    )


def test_parts_that_do_not_fit_are_refused():
    law, estimator = standing()
    with pytest.raises(ProblemError, match=r"period is 0\.004 s.*0\.002 s; expected the same"):
        with_estimator(replace(law.controller, period=0.002), estimator)
    with pytest.raises(ProblemError, match="expected those of one model"):
        with_estimator(made("qp"), replace(estimator, period=1e-3))
    f = ca.Function("law", [ca.SX.sym("y", 2)], [ca.SX(1, 1)], ["y"], ["u"])
    nothing = mb.Controller(
        "law",
        f,
        (Signal("y", (), ()),),
        (Signal("u", (), ()),),
        *np.ones((2, 1)),
        np.zeros(0),
        PERIOD,
    )
    with pytest.raises(ProblemError, match="expected one of q and v"):
        with_estimator(nothing, estimator)
    with pytest.raises(ProblemError, match=r"apart: validate\(law, .* sensors="):
        mb.validate(with_estimator(law, estimator), MODEL, 0.1)
    with pytest.raises(ProblemError, match="blind"):
        with_estimator(law, estimator, blind=0.0)


def test_a_filter_gets_the_control_that_acted():
    system = mb.read_mjcf(mb.models.path("four_bar"))
    held = mb.equilibrium(system)
    linear = mb.linearize(system, held)
    law = lqr(linear, np.ones(2 * system.nv), 1.0, options=LawOptions(period=1e-3))
    sensors = [Measured(k, 1e-3, kind="position") for k in ("crank", "rocker")]
    estimator = manifold_filter(system, sensors, force_noise=0.02, q0=held.q)
    whole = with_estimator(law, estimator)
    out = whole.function(y=estimator.y0, z=whole.controller.z0)
    alone = estimator.function(
        y=estimator.y0, valid=[1, 1], u=safe_command(law.controller), dt=1e-3, z=estimator.z0
    )
    assert np.array(out["q"]) == pytest.approx(np.array(alone["q"]), abs=1e-12)
    assert int(out["estimate_status"]) == int(alone["status"])
    y = estimator.y0
    assert y == pytest.approx(held.q[[0, 2]], abs=1e-9), "what encoders read at rest"
    assert whole.controller.inputs[0].units == ("rad", "rad")
