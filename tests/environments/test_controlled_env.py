"""Environments of Gymnasium: its own checker, what actions mean, episodes that repeat."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import mbcasadi as mb
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.environments import ControlledEnv, controlled_env
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.validation import Push, ScenarioOptions, Trial

MODEL = mb.models.path("four_bar")
Q0 = [0.2, 0.0, 0.0]
SPEC = """
type = "inverse_dynamics_qp"
period = 0.002
[[task]]
type = "posture"
joints = ["crank"]
kp = 100.0
[validation]
duration = 0.2
"""


@pytest.fixture(scope="module")
def law():
    system = mb.read_mjcf(MODEL)
    task = PostureTask(("crank",), kp=100.0)
    law = InverseDynamicsQP(system, [task], period=0.002, tunable=("gains",))
    with mb.validation.compile_controller(law) as compiled:
        yield compiled


def env_of(law, actions, duration=0.2, **options):
    trial = Trial(duration, reference=[0.2, 0.0, 0.0], q0=Q0)
    return ControlledEnv(MODEL, law, trial, actions, **options)


@pytest.mark.filterwarnings("ignore:.*infinity:UserWarning")  # as of MuJoCo's environments
def test_gymnasium_finds_nothing_wrong(law):
    env = env_of(
        law, {"ref": (-0.1, 0.1)}, ticks=5, start_error=0.01, perturb={"mass": (-0.1, 0.1)}
    )
    check_env(env, skip_render_check=True)
    assert env.metadata["render_fps"] == 100
    env.close()


def test_actions_add_to_the_reference_and_replace_tuned_numbers(law):
    """Recorded inputs of the controller are what the ranges say, component by component."""
    env = env_of(law, {"posture.q": (-0.1, 0.3), "posture.kp": (50.0, 150.0)}, ticks=3)
    assert env.action_space.shape == (2,)
    env.reset()
    for action, moved, gain in (([-1, -1], -0.1, 50.0), ([0.5, 7.0], 0.2, 150.0)):
        env.step(np.array(action, dtype=float))
        given = env._loop.inputs
        np.testing.assert_allclose(given["ref"], [0.2 + moved, 0.0, 0.0], atol=1e-15)
        default = law.controller.default_tuning
        names = [entry.name for entry in law.controller.tuning]
        changed = [name.startswith("posture.kp") for name in names]
        np.testing.assert_allclose(given["tuning"], np.where(changed, gain, default))
    env.reset()
    env.step(np.zeros(2))
    np.testing.assert_allclose(env._loop.inputs["ref"], [0.3, 0.0, 0.0], atol=1e-15)
    env.close()


def test_numbers_that_the_trial_tunes_are_kept_but_for_those_of_actions(law):
    names = [entry.name for entry in law.controller.tuning]
    tuned = np.linspace(60.0, 90.0, len(names))
    trial = Trial(0.2, reference=Q0, q0=Q0, scenario=ScenarioOptions(tuning=lambda t: tuned + t))
    env = ControlledEnv(MODEL, law, trial, {names[0]: (50.0, 150.0)})
    env.reset()
    for k in range(2):
        env.step(np.ones(1))
        expected = tuned + k * law.controller.period
        expected[0] = 150.0
        np.testing.assert_allclose(env._loop.inputs["tuning"], expected)
    env.close()


def test_a_reference_that_an_outer_law_computes_takes_no_actions(law, monkeypatch):
    prepared = controlled_env.prepare
    without = lambda *given: prepared(*given)._replace(reference=None)  # noqa: E731
    monkeypatch.setattr(controlled_env, "prepare", without)
    with pytest.raises(ProblemError, match="outer law computes it"):
        env_of(law, {"ref": (-0.1, 0.1)})


def test_without_an_action_it_is_the_run_of_validate(law):
    """A zero action of symmetric ranges leaves the loop as it is, tick by tick."""
    env = env_of(law, {"ref": (-1.0, 1.0)}, ticks=2)
    observed = [env.reset()[0]]
    ended = False
    while not ended:
        seen, reward, terminated, ended, info = env.step(np.zeros(3))
        observed.append(seen)
        assert not terminated
        assert reward == 1.0
        assert info["status"] == 0
    report = mb.validate(
        law, MODEL, 0.2, reference=[0.2, 0.0, 0.0], q0=Q0,
        report=mb.validation.ReportOptions(explain=False, timing=False),
    )  # fmt: skip
    recording = report.runs[0].recording
    rows = np.hstack([recording.q, recording.v])[::2]
    assert len(observed) == len(rows) + 1  # the last one is at the end
    np.testing.assert_array_equal(observed[:-1], rows)
    env.close()


def test_episodes_repeat_by_their_seed_and_differ_without(law):
    env = env_of(
        law, {"ref": (-0.1, 0.1)}, ticks=10, start_error=0.05, perturb={"mass": (-0.2, 0.2)}
    )

    def episode(seed):
        seen, info = env.reset(seed=seed)
        return [seen, env.step(np.ones(3))[0]], info["errors"]["mass"]

    first, again, other = episode(1), episode(1), episode(2)
    np.testing.assert_array_equal(first[0], again[0])
    assert not np.array_equal(first[0], other[0])
    assert len({repr(first[1]), repr(again[1]), repr(other[1])}) == 2
    env.close()


def test_a_bad_end_terminates_and_says_why(law):
    """A falling cart: no controller, an action that is the force, a criterion of the user."""
    cart = mb.models.path("cart_pole")
    trial = Trial(1.0, period=0.01, disturbance=Push("pole", [30.0, 0, 0], 0.0, 0.5))
    env = ControlledEnv(
        cart, None, trial, {"u": (-2.0, 2.0)},
        observe=lambda step: step.data.qpos,
        reward=lambda step: -float(np.abs(step.row["u_applied"]).sum()),
        terminate=lambda step: np.abs(step.data.qpos).max() > 0.5,
    )  # fmt: skip
    env.reset()
    _, reward, terminated, _, info = env.step(np.full(env.action_space.shape, 0.5))
    assert reward == pytest.approx(-1.0 * env.plant.nu)
    while not terminated:
        seen, _, terminated, truncated, info = env.step(env.action_space.low)
    assert info["ended"] == "terminate"
    assert not truncated
    assert np.abs(seen).max() > 0.5
    env.close()


def test_what_makes_no_sense_is_refused(law):
    with pytest.raises(UnknownNameError, match=r"posture\.q"):
        env_of(law, {"posture.qq": (-1, 1)})
    with pytest.raises(ProblemError, match="low < high"):
        env_of(law, {"ref": (1, 1)})
    with pytest.raises(ProblemError, match="no actions"):
        env_of(law, {})
    with pytest.raises(ProblemError, match="render_mode"):
        env_of(law, {"ref": (-1, 1)}, render_mode="human")


def test_gymnasium_makes_it_by_name_from_a_file_alone_and_as_a_vector(tmp_path):
    spec = tmp_path / "crank.toml"
    spec.write_text(SPEC, encoding="utf-8")
    known = {"model": "four_bar", "spec": str(spec), "actions": {"posture.q": (-0.1, 0.1)}}
    name = "mbcasadi.environments:mbcasadi/Controlled-v0"
    envs = gymnasium.make_vec(name, num_envs=2, ticks=5, **known)
    seen, _ = envs.reset(seed=0)
    after, reward, *_ = envs.step(np.array([[1.0], [-1.0]]))
    assert seen.shape == after.shape == (2, 6)
    assert np.all(reward == 1)
    assert after[0, 3] > 0 > after[1, 3]  # the cranks turn to where they are commanded
    envs.close()
