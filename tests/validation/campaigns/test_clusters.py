"""The clusters of the guide: each program of the page as it stands there."""

import sys
import types
from concurrent.futures import ThreadPoolExecutor

import dask_jobqueue
from support.pages import DOCS
from support.snippets import snippets_of
from support.validation_problems import all_digits, crank_controller, swing

from mbcasadi import models
from mbcasadi.validation import CampaignOptions, Criteria, Trial, campaign, cases

PAGE = DOCS / "guides" / "clusters.md"


def program(word):
    """Return the one program of the page that has a word."""
    (code,) = (each.code for each in snippets_of(PAGE, "python") if word in each.code)
    return code


def run(**where):
    trial = Trial(0.05, reference=swing, criteria=Criteria({"tracking.max": 0.1}), fast=True)
    plan = cases(range(4), [{"mass": 0.2}])
    model = models.path("four_bar")
    return campaign(crank_controller(), model, trial, plan, CampaignOptions(**where))


class Remote:
    """What `ray.remote` returns: calls run in a thread."""

    def __init__(self, pool, function):
        self.pool, self.function, self.calls = pool, function, 0

    def remote(self, *args, **kwargs):
        self.calls += 1
        future = self.pool.submit(self.function, *args, **kwargs)
        return types.SimpleNamespace(future=lambda: future)


def test_an_executor_of_a_few_lines_runs_a_campaign_on_ray(monkeypatch):
    with ThreadPoolExecutor(1) as pool:
        ray = types.SimpleNamespace(remote=lambda function: Remote(pool, function))
        monkeypatch.setitem(sys.modules, "ray", ray)
        names = {"__name__": "executor_of_ray"}
        exec(program("class RayExecutor"), names)
        executor = names["RayExecutor"]()
        done = run(executor=executor)
    assert executor.call.calls > 0
    assert all_digits(done) == all_digits(run(jobs=1))


def test_the_job_script_of_slurm_is_that_of_the_page(capsys):
    names = {}
    exec(program("SLURMCluster"), names)
    with names["cluster"] as cluster:
        assert isinstance(cluster, dask_jobqueue.SLURMCluster)
        script = capsys.readouterr().out
    (shown,) = (each.code for each in snippets_of(PAGE, "text") if "SBATCH" in each.code)
    *lines, command = shown.splitlines()
    assert [line for line in script.splitlines() if line in lines] == lines
    before, after = command.split(" ... ")
    assert before.removeprefix("python ") in script
    assert all(option in script for option in after.split(" --"))


def test_the_program_for_mpi_prints_what_the_page_says(monkeypatch, capsys):
    futures = types.SimpleNamespace(MPIPoolExecutor=lambda: ThreadPoolExecutor(1))
    monkeypatch.setitem(sys.modules, "mpi4py", types.SimpleNamespace(futures=futures))
    monkeypatch.setitem(sys.modules, "mpi4py.futures", futures)
    exec(program("MPIPoolExecutor"), {"__name__": "__main__"})
    shown = next(each.code for each in snippets_of(PAGE, "text") if "runs passed" in each.code)
    assert capsys.readouterr().out == shown
