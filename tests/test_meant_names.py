"""What a name or an argument of others means here: models, the longest beginning, synonyms."""

import pytest

import mbcasadi as mb
from mbcasadi import control, models, mpc, validation
from mbcasadi.errors import ModelError, ProblemError
from mbcasadi.plant import Plant
from mbcasadi.unknown_names import closest


def test_a_name_that_begins_like_the_text_comes_before_one_that_resembles_it():
    names = ["qr_inverse_dynamics", "inverse_dynamics_qp", "lqr"]
    assert closest("inverse_dynamic", names, 1) == ["inverse_dynamics_qp"]
    assert closest("qr_inverse", names, 1) == ["qr_inverse_dynamics"]
    assert closest("lq", names, 1) == ["lqr"]  # too short to be a beginning: it resembles
    assert closest("walking", names, 1) == []


def test_reader_and_plant_take_the_names_of_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    by_path = mb.read_mjcf(models.path("four_bar"))
    for name in ("four_bar", "four_bar.xml"):
        assert mb.read_mjcf(name).tree.name == by_path.tree.name
        assert Plant(name).nq == by_path.nq
    text = models.path("four_bar").read_text(encoding="utf-8")
    (tmp_path / "four_bar.xml").write_text(text.replace('model="four_bar"', 'model="mine"'))
    assert mb.read_mjcf("four_bar.xml").tree.name == "mine"  # a file of the folder comes first


@pytest.mark.parametrize("read", [mb.read_mjcf, Plant])
def test_an_unknown_model_gets_the_one_that_is_meant(read):
    with pytest.raises(ModelError, match=r"no file 'quadrupd'; .*did you mean 'quadruped'\?$"):
        read("quadrupd")
    with pytest.raises(ModelError, match=r"no file 'nowhere/quadruped.xml'; .* of the package$"):
        read("nowhere/quadruped.xml")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: control.InverseDynamicsQP(dt=1e-3), r"InverseDynamicsQP\(\) .*mean 'period='\?$"),
        (lambda: mpc.LinearOptions(dt=1e-3), "did you mean 'period='"),
        (lambda: mb.validate(Ts=1e-3), r"validate\(\) got .*'Ts'; did you mean 'period='"),
        (lambda: mb.read_mjcf("four_bar", parameter=[]), "did you mean 'parameters='"),
        (lambda: mb.read_mjcf("four_bar", colour="red"), "keyword argument 'colour'$"),
    ],
)
def test_an_unknown_argument_gets_the_one_that_is_meant(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_the_client_of_a_cluster_is_told_from_its_executor():
    class Client:
        pass

    with pytest.raises(ProblemError, match=r"executor is a Client; .*client\.get_executor\(\)"):
        validation.CampaignOptions(executor=Client())


def test_no_geom_at_all_is_called_so():
    with pytest.raises(ProblemError, match="no geom of any body may touch another geom"):
        mb.contacts_of(mb.read_mjcf("quadruped"), geoms=[])
