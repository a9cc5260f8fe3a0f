"""PID servos: force, rates and next states are MuJoCo's, of its plugin and of the pid of MJCF."""

from itertools import product

import casadi as ca
import mujoco
import numpy as np
import pytest

from mbcasadi import equilibrium, mjcf, model, read_mjcf
from mbcasadi.errors import ModelError, UnsupportedFeatureError
from mbcasadi.mjcf.compat import VERSION
from mbcasadi.plant import compile_model
from mbcasadi.validation.agreement import agreement_with_mujoco, judge

ROUNDING = 1e-12
STATES = 6
BODIES = """<worldbody><body><joint name="j" axis="0 1 0"/><geom size=".1" pos="0 0 .2"/>
<body pos="0 0 .4"><joint name="k" type="ball"/><geom size=".1" pos="0 0 .2"/></body></body>
</worldbody>"""
FIRST = '<general joint="j" dyntype="filter" dynprm=".3"/>'  # so that states begin further back


def plugin(gains, attributes, options=""):
    """Return a model with one plugin; gains as `kp=4 ki=2`."""
    pairs = (pair.split("=") for pair in gains.split())
    config = "".join(f'<config key="{key}" value="{value}"/>' for key, value in pairs)
    return (
        f'<mujoco><option timestep="0.003" {options}/><extension><plugin plugin="mujoco.pid">'
        f'<instance name="p">{config}</instance></plugin></extension>{BODIES}<actuator>{FIRST}'
        f'<plugin plugin="mujoco.pid" instance="p" {attributes}/></actuator></mujoco>'
    )


def plugins():
    """Yield the plugin with each bound, dynamics and range."""
    choices = ("", " ki=3", " ki=3 imax=.05"), ("", " slewmax=2", " slewmax=0")
    kinds = ("none", "filter", "filterexact", "integrator")
    for (integral, slew), dynamics, limited in product(product(*choices), kinds, (False, True)):
        states = bool(integral) + bool(slew) + (dynamics != "none")
        text = 'joint="j" gear="1.7"'
        if states:
            text += f' actdim="{states}" dyntype="{dynamics}" dynprm=".1"'
        if limited:
            text += ' ctrlrange="-.8 .9" forcerange="-3 3.5"'
            if dynamics != "none":
                text += ' actlimited="true" actrange="-.5 .6" actearly="true"'
        yield plugin(f"kp=4 kd=.7{integral}{slew}", text)


def pids():
    """Yield the pid of MJCF with each bound and input, on a hinge and on a ball."""
    gains = ("", 'ki="3"', 'ki="3" imax=".05"'), ("", 'slewmax="2"')
    joints = ('joint="j" gear="1.7" forcerange="-3 3.5"', 'joint="k" gear="0 0 2"')
    inputs = ("pos", "pos vel ff")
    for integral, slew, joint, used in product(*gains, joints, inputs):
        yield (
            f'<mujoco><option timestep="0.003"/>{BODIES}<actuator>{FIRST}<pid kp="4" kv=".7" '
            f'{joint} input="{used}" {integral} {slew}/></actuator></mujoco>'
        )


def states_of(compiled):
    """Yield states; every second one has small activations, so that bounds are not reached."""
    rng = np.random.default_rng(1)
    for k in range(STATES):
        q, v, u, act = (
            rng.normal(size=n) for n in (compiled.nq, compiled.nv, compiled.nu, compiled.na)
        )
        q[1:] /= np.linalg.norm(q[1:])
        yield q, v, 2 * u, (0.02 if k % 2 else 0.5) * act


@pytest.mark.parametrize("sources", [plugins, *([pids] if VERSION >= (4, 0) else [])])
def test_force_rates_and_next_states_are_mujocos(sources):
    for source in sources():
        compiled = mujoco.MjModel.from_xml_string(source)
        numbers, data, m = mjcf.read(compiled), mujoco.MjData(compiled), compiled
        assert not numbers.coverage.by("refused"), source
        symbols = [ca.SX.sym(*size) for size in zip("qvua", (m.nq, m.nv, m.nu, m.na), strict=True)]
        args = numbers.tree, numbers.actuators, *symbols
        outputs = [model.actuator_force(*args)]
        if m.na:
            outputs += [model.act_dot(*args), model.next_act(*args, m.opt.timestep)]
        ours = ca.Function("ours", symbols, [ca.densify(x) for x in outputs])
        for state in states_of(m):
            data.qpos[:], data.qvel[:], data.ctrl[:], data.act[:] = state
            data.time = 1.0  # at time 0 the plugin does not hold its slew rate
            mujoco.mj_forward(m, data)
            theirs = [np.array(data.qfrc_actuator), np.array(data.act_dot)]
            mujoco.mj_step(m, data)
            values = [x.full().ravel() for x in ours.call(state)]
            for mine, its in zip(values, [*theirs, data.act], strict=False):
                size = 1 + np.abs(its).max()
                assert np.abs(mine - its).max() < ROUNDING * size, source


def test_members_of_a_model_with_plugins_agree_with_mujoco():
    source = plugin("kp=4 ki=4 kd=.4 imax=.5 slewmax=3", 'joint="j" actdim="2" ctrlrange="0 .15"')
    system = read_mjcf(source)
    assert judge(agreement_with_mujoco(system, compile_model(source), 5, frames=0)).passed


@pytest.mark.parametrize("bound", ["", " imax=.1"])
def test_at_rest_the_integral_carries_the_load_up_to_its_bound(bound):
    source = plugin(f"kp=9 ki=4 kd=1{bound}", 'joint="j" actdim="1"').replace(FIRST, "")
    source = source.replace('type="ball"', 'type="hinge" stiffness="1e3"')
    at_rest = equilibrium(read_mjcf(source), [0.4, 0.0])
    compiled = compile_model(source)
    data = mujoco.MjData(compiled)
    data.qpos[:], data.ctrl[:], data.act[:] = at_rest.q, at_rest.u, at_rest.act
    data.time = 1.0
    mujoco.mj_forward(compiled, data)
    assert np.abs(data.actuator_force).max() > 1
    assert np.abs([*data.qacc, *data.act_dot]).max() < 1e-8
    assert (abs(at_rest.u[0] - at_rest.q[0]) > 0.01) == bool(bound)


@pytest.mark.parametrize(
    ("source", "member", "reason"),
    [
        (
            plugin("kp=1", 'joint="j" group="2"', 'actuatorgroupdisable="2"'),
            "actuator_force",
            "a group that is switched off: .* enable the group",
        ),
        (plugin("ki=1 imax=1 kp=-.003", 'joint="j" actdim="1"'), "actuator_bias", "without kp"),
    ],
)
def test_what_has_no_equation_is_refused_by_name(source, member, reason):
    with pytest.raises(UnsupportedFeatureError, match=reason):
        getattr(read_mjcf(source), member)


@pytest.mark.parametrize("read", [read_mjcf, compile_model])
def test_a_plugin_without_its_library_says_what_to_load(read):
    with pytest.raises(ModelError, match="the plugin is not loaded: call mujoco"):
        read(plugin("kp=1", 'joint="j"').replace("mujoco.pid", "mujoco.unknown"))
