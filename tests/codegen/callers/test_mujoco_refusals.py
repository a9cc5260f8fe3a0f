"""What the plugin of MuJoCo refuses: models that do not fit, laws that it cannot run."""

import casadi as ca
import mujoco
import numpy as np
import plugin_problems as plugin
import pytest

import mbcasadi as mb
from mbcasadi.errors import ExportError

FAILED = 4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('joint name="crank"', 'joint name="handle"', "no joint for 'crank' of q"),
        ('<motor name="crank"', '<motor name="m"', "no actuator with the control 'crank'"),
        ('timestep="0.0005"', 'timestep="0.0003"', "0.001 s is not a multiple of .*0.0003 s"),
        ('key="ref" value="', 'key="ref" value="1 ', "'ref' has 4 numbers, expected 3"),
        ('key="mask" value="', 'key="mask" value="on ', "'mask' holds 'on .*expected 1 numbers"),
        ('key="userdata" value="0"', 'key="userdata" value="1"', 'set <size nuserdata="7"/>'),
        ('key="ref"', 'key="reff"', "reff"),
        (
            "<default>",
            '<option><flag spring="disable" damper="disable"/></option><default>',
            "do not disable both springs and dampers",
        ),
    ],
)
def test_what_does_not_fit_is_an_error_at_load(old, new, message):
    project, _ = plugin.exported("four_bar")
    text, snippet = plugin.model_text("four_bar"), plugin.declaration(project)
    assert old in text + snippet
    text = text.replace('joint="crank"', 'joint="handle"') if "handle" in new else text
    with pytest.raises(ValueError, match=message):
        plugin.with_plugin(project, text.replace(old, new), snippet.replace(old, new))


def test_a_quantity_that_mujoco_does_not_give_must_come_from_userdata():
    controller = plugin.hand_made("plugin_needs")
    function, names = controller.function, [s.name for s in controller.inputs]
    symbols, called = function.sx_in(), ["q", "v", "f_measured", *names[3:]]
    outputs = function.call(symbols), called, function.name_out()
    renamed = ca.Function("plugin_needs", symbols, *outputs)
    inputs = [
        s if s.name != "act" else type(s)("f_measured", ("f",), ("N",)) for s in controller.inputs
    ]
    law = mb.Controller(**(vars(controller) | {"function": renamed, "inputs": tuple(inputs)}))
    project = plugin.export(law, {"ref": [0.2]})
    text = plugin.FILTERED
    model = plugin.with_plugin(project, text)
    data, place = mujoco.MjData(model), project.manifest["mujoco"]["userdata"]["f_measured"]
    mujoco.mj_step(model, data)
    assert data.plugin_state[0] == FAILED  # this law does not check its inputs
    mujoco.mj_resetData(model, data)
    data.userdata[place["switch"]], data.userdata[place["first"]] = 1, 0.5
    mujoco.mj_step(model, data)
    assert data.plugin_state[0] == 0
    assert model.nuserdata == 4
    snippet = plugin.declaration(project).replace('<config key="userdata" value="0"/>', "")
    with pytest.raises(ValueError, match="measures 'f_measured', which MuJoCo does not give"):
        plugin.with_plugin(project, text, snippet)


def test_a_plain_function_has_no_plugin(tmp_path):
    x = ca.SX.sym("x")
    with pytest.raises(ExportError, match="no control u and no period"):
        mb.export_c(ca.Function("f", [x], [2 * x]), tmp_path / "out", mujoco_plugin=True)
    assert not (tmp_path / "out").exists()
    project = mb.export_c(ca.Function("f", [x], [2 * x]), tmp_path / "out")
    with pytest.raises(ExportError, match="export with mujoco_plugin=True"):
        project.build_mujoco_plugin(plugin.MUJOCO)


def test_a_law_that_follows_a_reference_needs_one_to_start_with(tmp_path):
    with pytest.raises(ExportError, match=r"give example=\{\"ref\": law\.reference_at\(q0\)\}"):
        mb.export_c(plugin.hand_made("follows"), tmp_path / "out", mujoco_plugin=True)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_not_mujocos_is_refused(tmp_path):
    project, _ = plugin.exported("four_bar")
    with pytest.raises(ExportError, match=r"holds no include/mujoco/mujoco\.h"):
        project.build_mujoco_plugin(tmp_path)


def test_two_instances_on_one_actuator_or_in_one_place_of_userdata_are_an_error_at_load():
    """Of one export or of two; with a place of its own for each they load."""
    first, second = (plugin.export(plugin.hand_made(f"claims_{k}"), {"ref": [0.2]}) for k in (1, 2))
    two = plugin.FILTERED.replace('name="slide"', 'name="a_slide"').replace("push", "a_push")
    two = two.replace('joint="slide"', 'joint="a_slide"')
    body = '<body><joint name="b_slide" type="slide"/><geom size="0.1" pos="0 1 0"/></body>'
    motor = '<general name="b_push" joint="b_slide" dyntype="filter" dynprm="0.05" gainprm="3"/>'
    two = two.replace("</worldbody>", f"{body}</worldbody>").replace(
        "</actuator>", f"{motor}</actuator>"
    )
    two = two.replace("<option", '<size nuserdata="40"/><option')

    def loaded(*instances):
        text = ""
        for k, (project, prefix, place) in enumerate(instances):
            text += f'<plugin plugin="mbcasadi.{project.name}"><instance name="i{k}">'
            values = {"prefix": prefix, "userdata": place, "others": "true"}
            text += "".join(f'<config key="{key}" value="{x}"/>' for key, x in values.items())
            text += "</instance></plugin>"
        whole = two.replace("<worldbody>", f"<extension>{text}</extension><worldbody>", 1)
        return mujoco.MjData(mujoco.MjModel.from_xml_string(whole))

    for other in (first, second):
        message = f"'a_push' is controlled by plugin instance 0, of mbcasadi.{first.name}"
        with pytest.raises(ValueError, match=message):
            loaded((first, "a_", 0), (other, "a_", 20))
        with pytest.raises(ValueError, match=r"userdata=.1. has 2 numbers, and plugin instance 0"):
            loaded((first, "a_", 0), (other, "b_", 1))
        data = loaded((first, "a_", 0), (other, "b_", 20))
        mujoco.mj_step(data.model, data)
        assert np.all(data.ctrl != 0)
