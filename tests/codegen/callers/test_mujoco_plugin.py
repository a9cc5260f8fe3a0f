"""The engine plugin of MuJoCo: the loop by hand, bit for bit; what it refuses."""

import re
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import plugin_problems as plugin
import pytest
from mujoco import rollout

from mbcasadi.codegen.compiler import find_compiler

C_PROGRAM = """
#include <mujoco/mujoco.h>
#include <stdio.h>
int main(int count, char **arguments) {
  char error[500] = "";
  mjModel *m;
  mjData *d;
  int k;
  (void)count;
  mj_loadPluginLibrary(arguments[1]);
  m = mj_loadXML(arguments[2], 0, error, sizeof error);
  if (!m) return puts(error), 1;
  d = mj_makeData(m);
  d->qvel[0] = 1;
  for (k = 0; k < 200; ++k) mj_step(m, d);
  for (k = 0; k < m->nq; ++k) printf("%.17g ", d->qpos[k]);
  printf("%.17g\\n", d->ctrl[0]);
  mj_deleteData(d);
  mj_deleteModel(m);
  return 0;
}
"""
USER = ("ref", "mask", "tuning", "p")


def started(project, name, integrator, q):
    """Return the model and data with the plugin, and those of the loop by hand."""
    text = plugin.model_text(name)
    models = plugin.with_plugin(project, text), mujoco.MjModel.from_xml_string(text)
    pair = []
    for model in models:
        model.opt.integrator = integrator
        data = mujoco.MjData(model)
        data.qpos[:] = q
        pair += [model, data]
    return pair


FOUR = (plugin.EULER, plugin.RK4, plugin.IMPLICIT, plugin.IMPLICITFAST)
RUNS = [("four_bar", i, 300) for i in FOUR] + [("quadruped", i, 100) for i in FOUR[:2]]


@pytest.mark.parametrize(("name", "integrator", "steps"), RUNS)
@pytest.mark.every(2)
def test_the_plugin_is_the_loop_by_hand(name, integrator, steps):
    project, example = plugin.exported(name)
    q = np.array(example["q"])
    q[-1] += 0.02
    model, data, plain, other = started(project, name, integrator, q)
    given = {n: example[n] for n in USER if n in example}
    controls = []
    for _ in plugin.steps_by_hand(project, plain, lambda _tick: given, steps, other):
        mujoco.mj_step(model, data)
        assert np.array_equal(plugin.state(data), plugin.state(other))
        controls.append(np.array(data.ctrl))
    assert np.ptp(controls, axis=0).max() > 1e-3  # the law had something to do
    assert data.plugin_state[0] == 0  # the status of the last tick


def test_userdata_moves_the_reference_at_run_time():
    project, example = plugin.exported("four_bar")
    model, data, plain, other = started(project, "four_bar", plugin.RK4, example["q"])
    place = project.manifest["mujoco"]["userdata"]["ref"]

    def reference(tick):
        return np.array([0.1 * np.sin(0.05 * tick), 0.0, 0.0])

    steps = round(project.manifest["period"] / model.opt.timestep)
    by_hand = plugin.steps_by_hand(
        project, plain, lambda k: {"ref": reference(k), "mask": example["mask"]}, 200, other
    )
    data.userdata[place["switch"]] = 1
    for k, _ in enumerate(by_hand):
        data.userdata[place["first"] :][: place["size"]] = reference(k // steps)
        mujoco.mj_step(model, data)
        assert np.array_equal(plugin.state(data), plugin.state(other))
    assert abs(data.qpos[0] - example["q"][0]) > 0.01


@pytest.mark.parametrize("integrator", [plugin.EULER, plugin.RK4])
def test_forward_may_be_called_often_and_elsewhere(integrator):
    project, example = plugin.exported("four_bar")
    model, data, _, _ = started(project, "four_bar", integrator, example["q"])
    data.qvel[0] = 1.0
    for _ in range(5):
        mujoco.mj_step(model, data)
        q = np.array(data.qpos)
        mujoco.mj_forward(model, data)
        once = np.concatenate([data.ctrl, data.plugin_state])
        data.qpos[0] += 0.1
        mujoco.mj_forward(model, data)
        elsewhere = np.concatenate([data.ctrl, data.plugin_state])
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        mujoco.mj_forward(model, data)
        assert np.array_equal(np.concatenate([data.ctrl, data.plugin_state]), once)
        due = data.plugin_state[-3] == 0
        assert (once[0] != elsewhere[0]) == due


@pytest.mark.parametrize("integrator", [plugin.EULER, plugin.RK4])
def test_copies_resets_and_restored_states_repeat_bit_for_bit(integrator):
    project, example = plugin.exported("four_bar")
    model, data, _, _ = started(project, "four_bar", integrator, example["q"])
    full = mujoco.mjtState.mjSTATE_INTEGRATION
    kept = np.empty(mujoco.mj_stateSize(model, full))

    def run(target, count):
        rows = []
        for _ in range(count):
            mujoco.mj_step(model, target)
            rows.append(plugin.state(target))
        return np.array(rows)

    data.qvel[0] = 1.0
    whole = run(data, 101)  # an odd count: in the middle of a control period
    copy = mujoco.MjData(model)
    mujoco.mj_copyData(copy, model, data)
    mujoco.mj_getState(model, data, kept, full)
    onwards = run(data, 50)
    assert np.array_equal(onwards, run(copy, 50))
    restored = mujoco.MjData(model)
    mujoco.mj_setState(model, restored, kept, full)
    assert np.array_equal(onwards, run(restored, 50))
    mujoco.mj_resetData(model, data)
    data.qpos[:] = example["q"]
    data.qvel[0] = 1.0
    assert np.array_equal(whole, run(data, 101))


def test_the_two_halves_of_a_step_may_be_on_different_data():
    project, example = plugin.exported("four_bar")
    model, data, _, _ = started(project, "four_bar", plugin.EULER, example["q"])
    copy = mujoco.MjData(model)
    for _ in range(10):
        mujoco.mj_step1(model, data)
        mujoco.mj_copyData(copy, model, data)
        mujoco.mj_step2(model, data)
        mujoco.mj_step2(model, copy)
        assert np.array_equal(plugin.state(data), plugin.state(copy))


def test_rollouts_on_threads_are_the_run_in_one():
    project, example = plugin.exported("four_bar")
    model, data, _, _ = started(project, "four_bar", plugin.RK4, example["q"])
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    size, starts = mujoco.mj_stateSize(model, full), []
    for k in range(6):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[0] = example["q"], 0.3 * k
        starts.append(np.empty(size))
        mujoco.mj_getState(model, data, starts[-1], full)
    rows, _ = rollout.rollout(
        model, [mujoco.MjData(model) for _ in range(2)], np.array(starts), nstep=60
    )
    mujoco.mj_setState(model, data, starts[5], full)
    end = np.empty(size)
    for _ in range(60):
        mujoco.mj_step(model, data)
    mujoco.mj_getState(model, data, end, full)
    assert np.array_equal(rows[5, -1], end)


@pytest.mark.parametrize("integrator", [plugin.EULER, plugin.RK4])
def test_a_law_made_by_hand_with_activation_time_and_state(integrator):
    project = plugin.export(plugin.hand_made(f"plugin_pd_{int(integrator)}"), {"ref": [0.2]})
    model, plain = (
        plugin.with_plugin(project, plugin.FILTERED),
        mujoco.MjModel.from_xml_string(plugin.FILTERED),
    )
    model.opt.integrator = plain.opt.integrator = integrator
    data = mujoco.MjData(model)
    for other in plugin.steps_by_hand(project, plain, lambda _tick: {"ref": [0.2]}, 300):
        mujoco.mj_step(model, data)
        assert np.array_equal(plugin.state(data), plugin.state(other))
    assert data.qpos[0] > plugin.BREAKS_AT


@pytest.mark.long
def test_the_last_command_of_a_broken_law_is_state_too():
    project = plugin.export(plugin.hand_made("plugin_breaks", plugin.BREAKS_AT), {"ref": [0.2]})
    model, plain = (
        plugin.with_plugin(project, plugin.FILTERED),
        mujoco.MjModel.from_xml_string(plugin.FILTERED),
    )
    data, broken = mujoco.MjData(model), 0
    for other in plugin.steps_by_hand(project, plain, lambda _tick: {"ref": [0.2]}, 600):
        mujoco.mj_step(model, data)
        assert np.array_equal(plugin.state(data), plugin.state(other))
        fresh = mujoco.MjData(model)
        mujoco.mj_copyData(fresh, model, data)
        data, broken = fresh, broken + (data.plugin_state[0] != 0)
    assert broken > 5


def test_two_robots_in_one_model_have_an_instance_each():
    project = plugin.export(plugin.hand_made("plugin_twice"), {"ref": [0.2]})
    part = re.search(r"<body>.*</body>", plugin.FILTERED)[0]
    motor = re.search(r"<general.*/>", plugin.FILTERED)[0]
    sides = {"left_": "0.2", "right_": "-0.1"}

    def named(text, side):
        return re.sub(r'(name|joint)="', rf'\1="{side}', text)

    text = plugin.FILTERED.replace(motor, "".join(named(motor, s) for s in sides))
    text = text.replace(part, "".join(named(part, s) for s in sides))
    instances = "".join(
        f'<instance name="{side}"><config key="prefix" value="{side}"/>'
        f'<config key="others" value="true"/><config key="ref" value="{ref}"/></instance>'
        for side, ref in sides.items()
    )
    snippet = re.sub(
        r"<instance.*</instance>", instances, plugin.declaration(project), flags=re.DOTALL
    )
    model = plugin.with_plugin(project, text, snippet)
    model.geom_contype[:] = 0
    data = mujoco.MjData(model)
    plain = mujoco.MjModel.from_xml_string(plugin.FILTERED)
    alone = [
        plugin.steps_by_hand(project, plain, lambda _tick, r=r: {"ref": [float(r)]}, 200)
        for r in sides.values()
    ]
    for pair in zip(*alone, strict=True):
        mujoco.mj_step(model, data)
        for k, other in enumerate(pair):
            assert np.array_equal(
                [data.qpos[k], data.qvel[k], data.act[k], data.ctrl[k]],
                [other.qpos[0], other.qvel[0], other.act[0], other.ctrl[0]],
            )
    with pytest.raises(ValueError, match="no joint for 'middle_slide' of q"):
        plugin.with_plugin(project, text, snippet.replace('"right_"', '"middle_"'))


@pytest.mark.skipif(sys.platform == "win32", reason="a program finds no library by its path there")
def test_a_program_in_c_steps_the_model_without_python(tmp_path):
    project, _ = plugin.exported("four_bar")
    library = project.build_mujoco_plugin(plugin.MUJOCO).path
    text = plugin.model_text("four_bar").replace(
        plugin.OPEN, f'<include file="{project.folder}/{project.name}_mujoco.xml"/>{plugin.OPEN}', 1
    )
    (tmp_path / "model.xml").write_text(text)
    (tmp_path / "main.c").write_text(C_PROGRAM)
    mujoco_library = next(Path(plugin.MUJOCO).glob("libmujoco.*"))
    command = [*find_compiler(), "-std=c99", "-isystem", f"{plugin.MUJOCO}/include", "main.c"]
    command += [str(mujoco_library), f"-Wl,-rpath,{plugin.MUJOCO}", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(
        ["./program", str(library), "model.xml"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    model, data, _, _ = started(project, "four_bar", plugin.RK4, np.zeros(3))
    data.qvel[0] = 1.0
    mujoco.mj_step(model, data, nstep=200)
    assert [float(word) for word in done.stdout.split()] == [*data.qpos, *data.ctrl]


def test_the_model_may_have_a_prefix_and_further_bodies():
    project, example = plugin.exported("four_bar")
    text = re.sub(r'(name|body1|body2|joint)="', r'\1="left_', plugin.model_text("four_bar"))
    ball = '<body pos="2 0 0"><freejoint/><geom type="sphere" size="0.1"/></body>'
    text = text.replace(plugin.OPEN, plugin.OPEN + ball)
    config = '<config key="prefix" value="left_"/><config key="others" value="true"/>'
    snippet = plugin.declaration(project).replace("</instance>", f"{config}</instance>")
    model = plugin.with_plugin(project, text, snippet)
    plain = mujoco.MjModel.from_xml_string(plugin.model_text("four_bar"))
    data = mujoco.MjData(model)
    given = {"ref": example["ref"], "mask": example["mask"]}
    for other in plugin.steps_by_hand(project, plain, lambda _tick: given, 40):
        mujoco.mj_step(model, data)
        # more rows in MuJoCo's factorisation: other rounding
        assert np.abs(data.qpos[7:] - other.qpos).max() < 1e-9
    with pytest.raises(ValueError, match="nq = 3, nv = 3, nu = 1 and the model has 10, 9, 1"):
        plugin.with_plugin(project, text)
