"""Campaigns in processes and on a Dask cluster: the same bits as in one process, nothing lost."""

import multiprocessing
import os
import signal
import sys
from multiprocessing.spawn import get_preparation_data

import pytest
from support.validation_problems import SLIDER, all_digits, crank_controller, planning_slider, swing

from mbcasadi import models
from mbcasadi.errors import MissingExtraError, ProblemError, SimulationError, UnknownNameError
from mbcasadi.validation import CampaignOptions, Criteria, Trial, campaign, cases, sampled_cases
from mbcasadi.validation.campaigns.schedule import dask_executor
from mbcasadi.validation.main_module import main_not_imported

FOUR_BAR = models.path("four_bar")
PLAN = cases(range(14), [{"mass": 0.2}], delays=[0, 3])
CRITERIA = Criteria({"tracking.max": 0.1})


def run(**more):
    trial = Trial(0.1, reference=swing, criteria=CRITERIA)
    return campaign(crank_controller(), FOUR_BAR, trial, PLAN, CampaignOptions(**more))


@pytest.fixture(scope="module")
def in_this_process():
    return run(jobs=1)


class Killer:
    """A progress function that kills a worker once, when some cases are done."""

    def __init__(self, kill):
        self.kill, self.killed = kill, False

    def __call__(self, text, share):
        if "runs are done" in text and 0.1 < share < 0.9 and not self.killed:
            self.killed = True
            self.kill()


def test_processes_give_the_same_bits_and_lose_nothing_when_one_is_killed(in_this_process):
    killer = Killer(lambda: multiprocessing.active_children()[0].kill())
    done = run(jobs=2, progress=killer)
    assert killer.killed
    assert all_digits(done) == all_digits(in_this_process)
    assert len(done.outcomes) == done.planned == 28


@pytest.mark.filterwarnings("default")  # of Dask, about the worker that dies
@pytest.mark.long
def test_a_dask_cluster_gives_the_same_bits_and_loses_nothing(in_this_process):
    distributed = pytest.importorskip("distributed")
    options = {"dashboard_address": None, "worker_dashboard_address": None}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster,
        dask_executor(cluster.scheduler_address) as executor,
    ):
        victim = next(iter(cluster.workers.values())).pid
        killer = Killer(lambda: os.kill(victim, signal.SIGTERM))
        done = run(executor=executor, progress=killer)
    assert killer.killed
    assert all_digits(done) == all_digits(in_this_process)


def test_a_script_needs_no_guard_around_its_campaign(monkeypatch):
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__spec__", None)
    monkeypatch.setattr(main, "__file__", "script.py", raising=False)
    imported = "init_main_from_path"
    assert imported in get_preparation_data("worker")
    with main_not_imported():
        assert imported not in get_preparation_data("worker")
    assert imported in get_preparation_data("worker")


def test_a_case_that_takes_too_long_fails_with_its_reason():
    trial = Trial(2.0, criteria=Criteria({}))
    done = campaign(planning_slider(), SLIDER, trial, cases([0]), CampaignOptions(time_limit=1e-6))
    (outcome,) = done.outcomes
    assert not outcome.passed
    assert "longer than 1e-06 s" in outcome.events[0]


def test_a_mistake_in_a_program_stops_the_campaign_and_names_the_case(monkeypatch):
    from mbcasadi.validation.campaigns import trials

    def wrong(*_args, **_options):
        raise ZeroDivisionError

    monkeypatch.setattr(trials, "judge", wrong)
    with pytest.raises(ZeroDivisionError) as caught:
        campaign(planning_slider(), SLIDER, Trial(0.1, criteria=Criteria({})), cases([3, 4]))
    assert "case 0" in caught.value.__notes__[0]
    assert "seed=3" in caught.value.__notes__[0]


def test_an_error_that_no_plant_can_have_is_refused_before_anything_runs():
    with pytest.raises(UnknownNameError, match="unknown perturbation 'colour'"):
        cases([0], [{}, {"colour": 0.1}])
    with pytest.raises(SimulationError, match=r"1\.5 is not between -1 and 1"):
        cases([0], [{"mass": 1.5}])  # some bodies would draw a negative mass
    with pytest.raises(SimulationError, match="not a finite number above -1"):
        sampled_cases({"mass": (-2.0, 1.5)}, 4)
    assert len(sampled_cases({"mass": (-0.9, 1.5)}, 4)) == 4


def test_wrong_workers_are_refused(monkeypatch):
    with pytest.raises(ProblemError, match="jobs = 0"):
        run(jobs=0)
    with pytest.raises(ProblemError, match="time_limit"):
        run(time_limit=-1.0)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match="cluster"), dask_executor("tcp://nowhere:1"):
        pass
