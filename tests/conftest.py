"""Shared by all tests: puts `support` on the path of every test, and says how C is compiled.

    MBCASADI_TEST_CFLAGS="-O3 -march=native" python -m pytest -n 2

appends these flags to every command of the C compiler, behind those that a test or an export chose:
the whole suite has to pass with them. Without them, exports are compiled at their default `-O3` in
some modules of `tests/codegen` only and at `-O1` in the others there, with `--all` those around the
arithmetic too; elsewhere at `-O0`, and without the search for equal parts that loops compute,
since both would take a quarter of the suite's time to optimise controllers that run for some
simulated seconds; for the same reason few ticks are timed,
few are recorded for the example program, runs that fail are repeated to find out why in
`tests/validation/run` and on the pages that print it only, and campaigns start processes of their
own in `tests/validation/campaigns` only.

    python -m pytest -n 2 --all

runs the tests that are marked `long` too, and all cases of tests with the mark `every(n)`, of which
the first and every n-th after it run otherwise. A test that is named runs whatever its mark. `long`
are closed loops, whole programs and pages whose parts have tests of their own, and tests of more
than a second whose lines of the package shorter ones reach too, by coverage with a context for each
test where it was measured, by their subject elsewhere. What stays is one
case of each independent reference (MuJoCo, a closed form, another formulation, a published number)
of a feature, and of each kind of mechanism: singular, redundant, underactuated, on a floating base.
Take n coprime to the inner dimension of a grid: then all values of each parameter still appear.

    make quick

runs the tests that a change touches, by pytest-testmon, the shortest first, and starts none after
`--budget` seconds.

Processes of one run share a temporary cache of what they compiled, so that equal exports are
compiled once. They share the bytecode of the package too, whatever `PYTHONDONTWRITEBYTECODE` says:
each program that a test starts would translate it anew, in half of the time of its start.
"""

import gc
import math
import os
import shlex
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

# Before NumPy is imported, here and in xdist's workers: the threads of several processes wait for
# each other, so that a product of 20 by 20 matrices takes milliseconds.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from importlib import import_module

from mbcasadi.codegen import manifest
from mbcasadi.codegen.cache import keys
from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.codegen.scalar_text import bodies
from mbcasadi.validation.closed_loop import monitor_in_c
from mbcasadi.validation.run import Diagnosis

QUICK, LOWER = ("-O0",), ("-O1",)
QUICK_BODIES: dict[str, str] = {}  # as `bodies._written`, without equal parts
OPTIMISED = ("codegen",)  # folders whose subject is the compiled C
AS_SHIPPED = {
    "test_compile_time.py",
    "test_least_distance.py",
    "test_longest_tick.py",
    "test_scalar_bodies.py",
    "test_strict_c.py",
}
AROUND = {  # the arithmetic: files, names, logs, phases, supervision
    "test_controller_batch.py",
    "test_emergency.py",
    "test_example.py",
    "test_export_names.py",
    "test_folder.py",
    "test_hostile_names.py",
    "test_replayed_logs.py",
    "test_supervised_plant.py",
    "test_supervised_ticks.py",
    "test_timing.py",
    "test_tuning.py",
    "test_two_phases.py",
}
TIMED, RECORDED, MONITORED = 20, 10, 1500  # ticks
LONG = ("demo", "docs", "whole_body", "fuzz")
EXPLAINED = {"test_printing_pages.py", "run"}  # whose subject is why a run failed
SPREAD = "campaigns"  # the folder whose subject is where cases run
EARLY = ("test_early_law.py", "test_early_verdict.py")  # whose subject is what runs before its C
CLOCK = {"start": time.monotonic()}  # of the tests, once they are collected


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add which tests run, and the time after which none starts."""
    parser.addoption("--budget", type=float, default=math.inf, help="start no test after SECONDS")
    text = "run also long tests, and all cases of those of which every n-th runs"
    parser.addoption("--all", action="store_true", help=text)


def _is_left_out(item: pytest.Item, counts: Counter[str]) -> bool:
    """Whether a test runs with `--all` only; `counts` are those of the cases so far."""
    name = item.nodeid.split("[")[0]
    counts[name] += 1
    every = item.get_closest_marker("every")
    is_between = every is not None and (counts[name] - 1) % every.args[0] != 0
    return is_between or item.get_closest_marker("long") is not None


def _is_over(config: pytest.Config) -> bool:
    return time.monotonic() - CLOCK["start"] > config.getoption("budget")


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """End the run where its time is over."""
    if _is_over(item.config):
        item.session.shouldstop = "the time is over: `make test` runs all tests"


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A run that ends since its time is over has passed unless a test failed."""
    over = _is_over(session.config) and exitstatus == pytest.ExitCode.INTERRUPTED
    if over and not session.testsfailed:
        session.exitstatus = pytest.ExitCode.OK


def pytest_configure(config: pytest.Config) -> None:
    """Make the cache of this run, and the compiler that appends `MBCASADI_TEST_CFLAGS`."""
    gc.disable()  # until all tests are collected, which leaves no garbage
    if hasattr(config, "workerinput"):  # xdist's workers inherit the environment
        return
    cache = tempfile.TemporaryDirectory(prefix="mbcasadi-cache-", ignore_cleanup_errors=True)
    config.add_cleanup(cache.cleanup)
    os.environ["MBCASADI_CACHE"] = cache.name
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    flags = os.environ.get("MBCASADI_TEST_CFLAGS")
    if not flags:
        return
    folder = tempfile.TemporaryDirectory(prefix="mbcasadi-cc-")
    config.add_cleanup(folder.cleanup)
    script = Path(folder.name) / "cc"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(find_compiler())} "$@" {flags}\n')
    script.chmod(0o700)
    os.environ["CC"] = str(script)


def pytest_collection_finish() -> None:
    """Let garbage collections pass over what lasts to the end: modules, tests and their data."""
    gc.collect()
    gc.freeze()
    gc.enable()
    CLOCK["start"] = time.monotonic()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run folders with tests of many seconds first, lest one of them ends behind all others.

    Where the time is limited they are the last.
    """
    if not config.getoption("--all") and not any("::" in word for word in config.args):
        counts = Counter[str]()
        kept, left_out = list[pytest.Item](), list[pytest.Item]()
        for item in items:
            (left_out if _is_left_out(item, counts) else kept).append(item)
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept
    limited = math.isfinite(config.getoption("budget"))
    items.sort(key=lambda item: (item.path.parent.name in LONG) == limited)


@pytest.fixture
def is_thorough(request: pytest.FixtureRequest) -> bool:
    """Whether samples have the size of the figures that are promised: with `--all`."""
    return bool(request.config.getoption("--all"))


@pytest.fixture(scope="module", autouse=True)
def short_reports(request: pytest.FixtureRequest):
    """Time few ticks, repeat no run and start no processes, where these are not the subject."""
    with pytest.MonkeyPatch.context() as patch:
        validate = import_module("mbcasadi.validation.trial_report")
        folders = request.path.relative_to(Path(__file__).parent).parts
        for module in ("run.c_afterwards", "closed_loop.outer_law"):
            patch.setattr(import_module(f"mbcasadi.validation.{module}"), "TIMED_TICKS", TIMED)
        if request.path.name not in EARLY:
            early = import_module("mbcasadi.validation.closed_loop.early_start")
            patch.setattr(early, "MOST_TICKS", 0)
        if not EXPLAINED & {*folders}:
            patch.setattr(validate, "diagnose", lambda *_: Diagnosis((), ()))
        if SPREAD not in folders:
            campaigns = import_module("mbcasadi.validation.campaigns.campaign")
            patch.setattr(campaigns, "PROCESS_COST", math.inf)
        yield


@pytest.fixture(scope="module", autouse=True)
def quick_builds(request: pytest.FixtureRequest):
    """Compile exports without optimisation, unless a test says how."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent.name in OPTIMISED:
            if request.path.name not in AS_SHIPPED:
                around = request.path.name in AROUND and not request.config.getoption("--all")
                patch.setattr(manifest, "DEFAULT_FLAGS", QUICK if around else LOWER)
            yield
            return
        patch.setattr(manifest, "DEFAULT_FLAGS", QUICK)
        patch.setattr(manifest, "LARGE_FLAGS", QUICK)
        patch.setattr(monitor_in_c, "FLAGS", QUICK)
        patch.setattr(monitor_in_c, "LEAST_TICKS", MONITORED)
        patch.setattr(bodies, "equal_parts", lambda _: [])
        patch.setattr(bodies, "_written", QUICK_BODIES)
        patch.setattr(keys, "FORMAT", "quick")  # what codegen's tests find in the cache is theirs
        patch.setattr(import_module("mbcasadi.codegen.example_run"), "RECORDED", RECORDED)
        yield
