"""Arguments are checked, results are written whole, and progress is reported."""

import csv
import subprocess
import sys

import casadi as ca
import numpy as np
import pytest
from simulation_mechanisms import particle, slider_crank

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi.simulation import EquationOptions, InitialConditions, IntegrationOptions
from mbcasadi.simulation.dormand_prince import STAGES, Step, error_norm
from mbcasadi.simulation.functions import rate_fun

START = ([0.3, -0.3], [1.0, -1.0])
MISSPELT = EquationOptions(formulation_options={"gama": 1.0})


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"q0": [0.3]}, err.ShapeError, r"q0 has shape \(1,\), expected \(2,\)"),
        ({"q0": [0.3, np.nan]}, err.ShapeError, "q0 holds NaN"),
        ({"v0": [[1, 2, 3]]}, err.ShapeError, "v0 has shape"),
        ({"v0": [np.inf, 0]}, err.ShapeError, "v0 holds NaN or infinity"),
        ({"duration": -1.0}, err.ProblemError, "duration is -1.0"),
        ({"duration": np.nan}, err.ProblemError, "duration = nan"),
        ({"duration": np.inf}, err.ProblemError, "finite"),
        ({"rtol": 0.0}, err.ProblemError, "rtol is 0.0"),
        ({"atol": -1.0}, err.ProblemError, "atol is -1.0"),
        ({"formulation": "newton"}, err.UnknownNameError, "'newton'; valid: .*'projection'"),
        ({"equations": MISSPELT}, err.UnknownNameError, "gama"),
        ({"initial": InitialConditions(mask=[1])}, err.ProblemError, r"no mask.*with_mask\(\)"),
        ({"times": [0.2, 0.1]}, err.ProblemError, "times must be sorted"),
        ({"times": [0.2, 9.0]}, err.ProblemError, "between 0 and 1 s"),
        ({"initial": InitialConditions(act=[1.0])}, err.ShapeError, "act has shape"),
        ({"force": lambda *_: [1.0]}, err.ShapeError, r"force\(t, q, v\) has shape \(1,\)"),
        ({"force": lambda *_: [np.nan, 0]}, err.ShapeError, "holds NaN"),
        ({"events": [mb.Switch("s", 0.5, [1, 1])]}, err.ShapeError, "mask of 's' has shape"),
    ],
)
def test_bad_input_is_refused_in_words(change, error, words):
    arguments = {"q0": START[0], "v0": START[1], "duration": 1.0} | change
    with pytest.raises(error, match=words):
        mb.simulate(slider_crank(), **arguments)


@pytest.mark.parametrize(
    ("options", "change", "error", "words"),
    [
        (InitialConditions, {"t0": np.nan}, err.ProblemError, "t0 = nan"),
        (IntegrationOptions, {"max_step": 0.0}, err.ProblemError, "max_step is 0.0"),
        (IntegrationOptions, {"max_steps": 0}, err.ProblemError, "max_steps is 0"),
        (
            IntegrationOptions,
            {"project": "sometimes"},
            err.UnknownNameError,
            "valid: 'stage', 'step'",
        ),
        (EquationOptions, {"row_scale": -1.0}, err.ProblemError, "row_scale is -1.0"),
        (EquationOptions, {"rank_tol": np.nan}, err.ProblemError, "rank_tol = nan"),
        (EquationOptions, {"rank_tol": 1.0}, err.ProblemError, "from 0 to below 1"),
        (EquationOptions, {"baumgarte": 5.0}, err.ProblemError, "expected a Baumgarte or None"),
    ],
)
def test_options_check_themselves(options, change, error, words):
    with pytest.raises(error, match=words):
        options(**change)


def test_functions_are_kept_for_the_next_simulation_with_equal_options_only():
    system = slider_crank()
    first = rate_fun(system, "lagrange", EquationOptions())
    assert rate_fun(system, "lagrange", EquationOptions()) is first
    others = (
        EquationOptions(rank_tol=1e-6),
        EquationOptions(baumgarte=mb.Baumgarte(5.0, 5.0)),
        EquationOptions(formulation_options={"semidefinite": True}),
    )
    made = [first, rate_fun(system, "projection", EquationOptions())]
    made += [rate_fun(system, "lagrange", other) for other in others]
    assert len({id(function) for function in made}) == len(made)


def test_a_start_off_the_manifold_is_moved_or_refused_or_taken():
    system, start = slider_crank(), ([0.3, -0.2], [1.0, -0.5])
    moved = mb.simulate(system, *start, 0.1)
    assert moved.drift[0] < 1e-12
    assert moved.drift_velocity[0] < 1e-12
    as_given, drifting = InitialConditions(assemble=False), IntegrationOptions(project="none")
    words = r"off the manifold: residual 0\.\d+ of .* over their sizes"
    with pytest.raises(err.SimulationError, match=words):
        mb.simulate(system, *start, 0.1, initial=as_given)
    with pytest.raises(err.SimulationError, match=words):
        mb.simulate_fixed_step(system, *start, 0.01, 10, keep=10, initial=as_given)
    taken = mb.simulate(system, *start, 0.1, initial=as_given, integration=drifting)
    np.testing.assert_array_equal(taken.q[0], start[0])


def test_a_motion_that_ends_early_says_when_and_why_and_keeps_what_was_reached():
    few = IntegrationOptions(max_steps=50)
    with pytest.raises(err.MotionError, match=r"max_steps = 50 ") as stopped:
        mb.simulate(
            particle(1), [0.0], [1.0], 5.0, force=lambda t, *_: [np.sin(1e4 * t)], integration=few
        )
    assert 0 < stopped.value.trajectory.t[-1] < 5.0

    def burst(t, *_):
        return [1 / (1 - t) ** 2]

    with pytest.raises(err.MotionError, match=r"collapsed at t = (1|0\.99)") as collapsed:
        mb.simulate(particle(1), [0.0], [0.0], 2.0, force=burst)
    reached = collapsed.value.trajectory
    assert isinstance(reached, mb.Trajectory)
    assert reached.t[-1] == pytest.approx(1.0, abs=1e-3)
    assert np.all(np.isfinite(reached.q))


def test_progress_is_reported_up_to_the_end():
    shares = []
    reporting = IntegrationOptions(progress=lambda _, share: shares.append(share))
    mb.simulate(slider_crank(), *START, 1.0, integration=reporting)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert 3 < len(shares) <= 102


@pytest.mark.parametrize("times", [[0.3], [0.1, 0.25], [0.0, 0.3], [0.0, 0.0, 0.2, 0.3, 0.3]])
def test_samples_are_those_that_were_asked_for(times):
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    system = mb.from_lagrangian(q, v, kinetic=v**2 / 2, potential=2 * q**2)
    motion = mb.simulate(system, [0.7], [0.0], 0.3, times=times)
    np.testing.assert_array_equal(motion.t, times)
    np.testing.assert_allclose(motion.q[:, 0], 0.7 * np.cos(2 * np.array(times)), atol=1e-8)
    with pytest.raises(err.ProblemError, match="times is empty"):
        mb.simulate(system, [0.7], [0.0], 0.3, times=[])


def test_a_run_that_fails_before_its_first_sample_returns_its_start():
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    system = mb.from_lagrangian(q, v, kinetic=v**2 / 2)
    few = IntegrationOptions(max_steps=3)
    with pytest.raises(err.MotionError) as stopped:
        mb.simulate(
            system, [0.7], [0.5], 9.0, times=[9.0], force=lambda t, *_: [np.cos(t)], integration=few
        )
    np.testing.assert_array_equal(stopped.value.trajectory.q, [[0.7]])


def test_tables_hold_every_array_and_appear_whole(tmp_path):
    trajectory = mb.simulate(slider_crank(), *START, 0.5, times=np.linspace(0, 0.5, 11))
    assert trajectory.q.shape == (11, 2)
    path = trajectory.save_npz(tmp_path / "run.npz")
    with np.load(path) as stored:
        assert set(stored) == set(trajectory.arrays())
        for name, value in trajectory.arrays().items():
            np.testing.assert_array_equal(stored[name], value)
    with trajectory.save_csv(tmp_path / "run.csv").open() as file:
        heading, *lines = csv.reader(file)
    assert heading[:5] == ["t", "q0", "q1", "v0", "v1"]
    table = np.array(lines, dtype=float)
    assert table.shape == (11, len(heading))
    np.testing.assert_array_equal(table[:, 1:3], trajectory.q)
    with pytest.raises(FileNotFoundError):
        trajectory.save_csv(tmp_path / "missing" / "run.csv")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.csv", "run.npz"]


def full_disk(*_):
    raise OSError("disk full")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    trajectory = mb.simulate(slider_crank(), *START, 0.1)
    path = trajectory.save_csv(tmp_path / "run.csv")
    before = path.read_bytes()
    monkeypatch.setattr(csv, "writer", full_disk)
    with pytest.raises(OSError, match="disk full"):
        trajectory.save_csv(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["run.csv"]


def test_plots_show_four_panels_and_missing_matplotlib_is_named(tmp_path, monkeypatch):
    catch = mb.Event("down", lambda _, q, __: q[0], mask=None)
    trajectory = mb.simulate(slider_crank(), *START, 1.0, events=[catch])
    figure = trajectory.plot()
    assert [axis.get_ylabel() for axis in figure.axes] == ["q", "v", "energy [J]", "drift"]
    figure.savefig(tmp_path / "run.png")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(err.MissingExtraError, match=r"mbcasadi\[tools\]"):
        trajectory.plot()


def test_energy_without_a_known_potential_is_not_a_number():
    q, v = ca.SX.sym("q", 1), ca.SX.sym("v", 1)
    system = mb.from_equations(q, v, M=np.eye(1), h=q)
    trajectory = mb.simulate(system, [1.0], [0.0], 1.0)
    assert np.all(np.isnan(trajectory.energy))
    np.testing.assert_allclose(trajectory.q[-1], np.cos(1.0), atol=1e-8)


def test_importing_a_simulation_imports_no_matplotlib():
    code = "import mbcasadi.simulation.simulate, sys; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_fixed_steps_are_recorded_at_the_times_that_they_reach():
    initial = InitialConditions(t0=2.0)
    run = mb.simulate_fixed_step(particle(2), *START, 0.01, 20, keep=10, initial=initial)
    np.testing.assert_allclose(run.t, [2.0, 2.1, 2.2])


def test_a_state_at_rest_has_no_error():
    rest = np.zeros(2)
    step = Step(0.0, 0.1, rest, rest, np.zeros((STAGES + 1, 2)))
    assert error_norm(step, np.ones(2)) == 0
