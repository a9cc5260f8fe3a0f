"""Every member of a `System` agrees with MuJoCo, or is refused by name."""

import mujoco
import pytest
from support import corpora
from support.agreement import assert_agrees
from support.fluid_cases import FLUID_CASES
from support.hard_cases import HARD_CASES, REFUSED
from support.random_models import random_mjcf

from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.mjcf.compat import VERSION, measures_turned_sites
from mbcasadi.system import read_mjcf

SEEDS = 8


def require_turned_sites():
    """Skip where MuJoCo measures rotations between turned sites wrongly, and we refuse them."""
    if not measures_turned_sites():
        pytest.skip(f"MuJoCo {mujoco.__version__} measures rotations between turned sites wrongly")


@pytest.mark.parametrize("name", HARD_CASES)
def test_each_feature_agrees_with_mujoco(name):
    if name == "sites with a reference":
        require_turned_sites()
    assert_agrees(name, HARD_CASES[name])


@pytest.mark.parametrize("name", ["boxes", "two ellipsoids on one body"])
def test_models_in_a_medium_agree_with_mujoco(name):
    assert_agrees(name, FLUID_CASES[name])


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.every(3)
def test_random_models_agree_with_mujoco(seed):
    require_turned_sites()
    assert_agrees(f"random model {seed}", random_mjcf(seed))


@pytest.mark.parametrize("path", corpora.PROJECT_MODELS, ids=lambda path: path.stem)
@pytest.mark.every(5)
def test_each_model_of_the_project_agrees_with_mujoco(path):
    if path.stem == "tendon_finger" and VERSION < (4, 0):
        pytest.skip("before 4.0 rounding chooses the way of tendons whose ends are equally far")
    assert_agrees(path.stem, path)


@pytest.mark.parametrize("label", corpora.packaged_names())
@pytest.mark.every(7)
def test_models_from_packages_agree_with_mujoco(label):
    assert_agrees(label, corpora.packaged_model(label))


@pytest.mark.parametrize("name", corpora.ROBOT_NAMES)
def test_robots_that_others_modelled_agree_with_mujoco(name):
    assert_agrees(name, corpora.robot(name))


@pytest.mark.parametrize("name", REFUSED)
def test_a_feature_without_equations_refuses_its_members_only(name):
    case = REFUSED[name]
    assert_agrees(name, case.xml, dict.fromkeys(case.members, case.words))


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_member_raises_with_the_feature_and_advice(name):
    case = REFUSED[name]
    system = read_mjcf(case.xml)
    for member in case.members:
        with pytest.raises(UnsupportedFeatureError, match=f"'{member}' is not available") as error:
            system.member(member)
        assert case.words in str(error.value)
