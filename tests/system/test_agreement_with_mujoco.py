"""Every member of a `System` agrees with MuJoCo, or is refused by name."""

from pathlib import Path

import mujoco
import pytest
from support import corpora
from support.hard_cases import (
    HARD_CASES,
    REFUSED,
    SPATIAL_ARMATURE,
    WITHOUT_ACTUATION_MATRIX,
)

from mbcasadi import mjcf
from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.mjcf.compat import measures_turned_sites
from mbcasadi.system import System, read_mjcf
from mbcasadi.validation.agreement import Agreement, compare

STATES = 8
STATES_OF_LARGE_MODELS = 4
LARGE = 40  # degrees of freedom

FLUID = {"passive_force": "option: "}
LOSSES = {
    "gymnasium/swimmer": FLUID,
    "dm_control/fish": FLUID,
    "men__bitcraze_crazyflie_2__cf2": FLUID,
}


def agreements(source: str | Path) -> tuple[System, list[Agreement]]:
    """Compare a model with MuJoCo."""
    system = read_mjcf(source)
    model, _ = mjcf.load(source)
    states = STATES if system.nv < LARGE else STATES_OF_LARGE_MODELS
    return system, compare(system, model, states=states)


def assert_agrees(label: str, source: str | Path, losses: dict[str, str] | None = None) -> None:
    """Assert that all quantities agree, apart from refused members (name → words of the reason)."""
    system, results = agreements(source)
    losses = losses or {}
    absent = {result.quantity: result.note for result in results if result.error != result.error}
    assert absent.keys() == losses.keys(), f"{label}: refused {absent}, expected {losses}"
    for member, words in losses.items():
        assert words in absent[member], f"{label}: {absent[member]}"
    wrong = [
        f"{label}: {result.quantity} [{result.unit}] is off by {result.error:.1e} "
        f"at state {result.state}"
        for result in results
        if result.quantity not in losses and not result.holds
    ]
    assert not wrong, "\n".join(wrong)
    assert system.nv == 0 or len(results) > len(losses), f"{label}: nothing was compared"


@pytest.mark.parametrize("name", HARD_CASES)
def test_each_feature_agrees_with_mujoco(name: str) -> None:
    if name == "sites with a reference" and not measures_turned_sites():
        pytest.skip(f"{name}: MuJoCo {mujoco.__version__} is wrong here, so we refuse it")
    losses = {"actuation": "velocity"} if name in WITHOUT_ACTUATION_MATRIX else {}
    assert_agrees(name, HARD_CASES[name], losses)


@pytest.mark.parametrize("path", corpora.PROJECT_MODELS, ids=lambda path: path.stem)
def test_each_model_of_the_project_agrees_with_mujoco(path: Path) -> None:
    assert_agrees(path.stem, path)


@pytest.mark.parametrize("label", corpora.packaged_names())
def test_models_from_packages_agree_with_mujoco(label: str) -> None:
    assert_agrees(label, corpora.packaged_model(label), LOSSES.get(label))


@pytest.mark.parametrize("name", corpora.ROBOT_NAMES)
def test_robots_that_others_modelled_agree_with_mujoco(name: str) -> None:
    assert_agrees(name, corpora.robot(name), LOSSES.get(name))


@pytest.mark.parametrize("name", REFUSED)
def test_a_feature_without_equations_refuses_its_members_only(name: str) -> None:
    case = REFUSED[name]
    assert_agrees(name, case.xml, dict.fromkeys(case.members, case.words))


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_member_raises_with_the_feature_and_advice(name: str) -> None:
    case = REFUSED[name]
    system = read_mjcf(case.xml)
    for member in case.members:
        with pytest.raises(UnsupportedFeatureError, match=f"'{member}' is not available") as error:
            system.member(member)
        assert case.words in str(error.value)


def test_armature_of_a_spatial_tendon_refuses_the_whole_model() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"tendon 'rope': armature .* set armature=0"):
        read_mjcf(SPATIAL_ARMATURE)
