"""Every kind of controller in a campaign: in this process and in another one, bit by bit."""

import os
import pickle
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from support.validation_problems import (
    SLIDER,
    SLIDER_GAIN,
    all_digits,
    compiled_library,
    crank_controller,
    planning_slider,
    swing,
)

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.codegen.compiled_library import this_machine
from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.errors import CompilerError, ProblemError
from mbcasadi.plant import Plant
from mbcasadi.validation import (
    CampaignOptions,
    Case,
    Policy,
    Trial,
    campaign,
    case_report,
    cases,
    shared_library,
)
from mbcasadi.validation.campaigns.shipping import ship
from mbcasadi.validation.closed_loop import FastLaw, as_runnable

PLAN = cases([1, 2], [{"mass": 0.2}], delays=[1], start_errors=[0.1])
TRIAL = Trial(0.3)
PD_C = "void pd(const double *q, const double *v, double *u) { u[0] = -20 * q[0] - 8 * v[0]; }"


class Integrating:
    """A callable that remembers its run."""

    def __init__(self):
        self.sum = 0.0

    def __call__(self, _t, q, v):
        self.sum += q[0]
        return [-20 * q[0] - 8 * v[0] - self.sum]


def late_mistake(t, q, v):
    if t > 0.1 and q[0] > 0:
        raise KeyError("gain")
    return [0.0]


def pd_function():
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    return ca.Function("pd", [q, v], [-SLIDER_GAIN @ ca.vertcat(q, v)], ["q", "v"], ["u"])


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compiled_library(tmp_path_factory.mktemp("library"), PD_C)


def become_a_bare_node(cache):
    """Leave this process no compiler, and nothing that another one has compiled."""
    os.environ.pop("CC", None)
    os.environ.update(PATH="", MBCASADI_CACHE=cache)


@pytest.fixture(scope="module")
def bare_node(tmp_path_factory):
    cache = str(tmp_path_factory.mktemp("node"))
    spawn = get_context("spawn")
    with ProcessPoolExecutor(1, spawn, become_a_bare_node, (cache,)) as executor:
        with pytest.raises(CompilerError, match="no C compiler on the PATH"):
            executor.submit(find_compiler).result()
        yield executor


def run(controller, **options):
    return campaign(controller, SLIDER, TRIAL, PLAN, CampaignOptions(**options))


@pytest.mark.long
def test_every_kind_has_the_same_digits_on_a_node_without_a_compiler_and_alone(
    library, bare_node, tmp_path
):
    gain = 20.0
    by_value: Callable[..., Any] = lambda _, q, v: [-gain * q[0] - 8 * v[0]]  # noqa: E731
    by_value.__module__ = "__main__"  # as in a script: cloudpickle sends it by value
    given = {
        "of ours": planning_slider(),
        "folder": mb.export_c(pd_function(), tmp_path / "pd").folder,
        "library": shared_library(library, "pd"),
        "Function": pd_function(),
        "callable with memory": Integrating(),
        "lambda of a script": by_value,
        "policy": Policy(lambda d: (d.qpos[0], d.qvel[0]), np.array, lambda o: -SLIDER_GAIN @ o),
    }
    peaks = {}
    for kind, controller in given.items():
        here = run(controller, jobs=1)
        assert len(here.outcomes) == 2, kind
        assert all(outcome.metrics for outcome in here.outcomes), (kind, here.outcomes)
        assert all_digits(run(controller, executor=bare_node)) == all_digits(here), kind
        (alone,) = case_report(controller, SLIDER, TRIAL, PLAN, 1).runs
        for metric in here.outcomes[1].metrics:
            np.testing.assert_equal(alone.metric(metric.name), metric.value, kind)
        peaks[kind] = here.outcomes[1].metric("torque.max")
    memory = peaks.pop("callable with memory")
    assert memory > 1.001 * peaks["Function"]
    np.testing.assert_allclose(list(peaks.values()), peaks["Function"], rtol=1e-12)


def test_what_a_users_function_raises_is_a_failed_case_with_its_reason():
    plan = [Case(0), Case(0, start_error=0.1), Case(3, start_error=0.1)]
    done = campaign(late_mistake, SLIDER, TRIAL, plan)
    starts = [np.random.default_rng(c.seed).uniform(-1, 1, 1)[0] * c.start_error for c in plan]
    assert [outcome.passed for outcome in done.outcomes] == [
        None if s <= 0 else False for s in starts
    ]
    (failed,) = [outcome for outcome in done.outcomes if outcome.passed is False]
    assert "'late_mistake' raised KeyError: 'gain'" in failed.events[0]
    assert "t = 0.11 s" in failed.events[0]


def test_what_has_no_pickle_runs_in_this_process_and_that_is_said(monkeypatch):
    lock = threading.Lock()

    def locked(t, q, v):
        with lock:
            return [-20 * q[0] - 8 * v[0]]

    done = run(locked)
    assert all(outcome.metrics for outcome in done.outcomes)
    assert "one process: the controller 'locked' cannot be sent" in str(done)
    with pytest.raises(ProblemError, match=r"'locked' cannot be sent .*lock.*expected jobs=1"):
        run(locked, jobs=2)
    calls_back = as_runnable(locked, Plant(SLIDER)).controller.function
    with pytest.raises(ProblemError, match="CasADi cannot serialise one of its Functions"):
        run(calls_back, jobs=2)
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(ProblemError, match="pip install cloudpickle"):
        run(lambda *_: [0.0], jobs=2)
    monkeypatch.setattr(sys.modules["__main__"], "late_mistake", late_mistake, raising=False)
    monkeypatch.setattr(late_mistake, "__module__", "__main__")
    with pytest.raises(ProblemError, match="defined in the script that runs"):
        run(late_mistake, jobs=2)


def test_a_library_travels_as_its_bytes_to_machines_of_its_type(library, tmp_path):
    moved = Path(tmp_path / library.name)
    moved.write_bytes(library.read_bytes())
    plant = Plant(SLIDER)
    sent = ship(as_runnable(shared_library(moved, "pd"), plant), monitor=False)
    moved.unlink()
    shipped = pickle.loads(pickle.dumps(sent))
    u = shipped.load(plant).start(plant)({"q": np.array([0.5]), "v": np.array([1.0])})["u"]
    assert u == [-18.0]
    with pytest.raises(
        ProblemError, match=f"is for dos 8086, this worker is {this_machine().system}"
    ):
        replace(shipped, content=(*shipped.content[:2], "dos 8086", 0.01)).load(plant)


def test_reference_time_step_and_period_are_those_of_validate():
    posture = mb.control.PostureTask(kp=20.0, kd=8.0)
    law = mb.control.InverseDynamicsQP(mb.read_mjcf(SLIDER), [posture], period=0.015)
    (run_alone,) = mb.validate(law, SLIDER, 0.3, q0=[0.4]).runs
    done = campaign(law, SLIDER, Trial(0.3, q0=[0.4]), [Case(0)])
    for metric in done.outcomes[0].metrics:
        np.testing.assert_equal(run_alone.metric(metric.name), metric.value, metric.name)
    assert [n for n in done.notes if "steps by" in n or "No reference" in n]
    slow = campaign(late_mistake, SLIDER, Trial(0.32, 0.04, q0=[-1.0]), [Case(0)])
    (alone,) = mb.validate(late_mistake, SLIDER, 0.32, period=0.04, q0=[-1.0]).runs
    assert slow.outcomes[0].metrics
    for metric in slow.outcomes[0].metrics:
        np.testing.assert_equal(alone.metric(metric.name), metric.value)


def test_a_fast_campaign_says_what_ran_and_has_the_motion_of_the_c(monkeypatch):
    plan, four_bar = cases([1], [{"mass": 0.1}]), models.path("four_bar")

    def done(fast):
        trial = Trial(0.1, reference=swing, fast=fast)
        return campaign(crank_controller(), four_bar, trial, plan, CampaignOptions(jobs=1))

    usual, fast = done(fast=False), done(fast=True)
    monkeypatch.setattr(sys.modules[FastLaw.__module__], "MOST_TICKS", 10)
    quick = done(fast=True)
    assert not [note for note in usual.notes if "Fast" in note]
    assert "Fast: all cases have run the law's Python Function" in str(fast)
    assert "Fast: all cases have run the generated C at -O1" in str(quick)
    for outcome in (fast.outcomes[0], quick.outcomes[0]):
        for metric in usual.outcomes[0].metrics:
            assert outcome.metric(metric.name) == pytest.approx(metric.value, rel=1e-6, abs=1e-9)


def test_a_store_knows_other_controllers_of_python(tmp_path):
    store, other = tmp_path / "runs.sqlite", Integrating()
    run(Integrating(), store=store)
    run(Integrating(), store=store)
    other.sum = 1.0
    with pytest.raises(ProblemError, match="another campaign"):
        run(other, store=store)
