"""What the public packages export: by `import *`, by attribute, and at the top."""

import importlib
import inspect
from types import ModuleType

import pytest
from fuzz.public_names import packages

import mbcasadi

PACKAGES = [*packages(), "mbcasadi.description"]

VERBS = {
    "describe",
    "assemble", "browse", "compare", "discretize", "evaluate", "judge", "linearize", "perturb",
    "play", "simulate", "soften", "validate",
}  # fmt: skip
TERMS = {"kalman", "lqg", "lqr", "pinv"}
"""Names of a method that stand for the method."""


@pytest.mark.parametrize("name", PACKAGES)
def test_import_star_gives_no_word_that_people_have_variables_of(name):
    """Classes and constants have capitals, functions are verbs or have several words."""
    module = importlib.import_module(name)
    for public in module.__all__:
        value = getattr(module, public)
        assert not isinstance(value, ModuleType), f"{name}.{public} is a package"
        named_well = public[0].isupper() or "_" in public.strip("_") or public in VERBS | TERMS
        assert named_well, f"{name}.{public}: put it into NOT_STARRED"


@pytest.mark.parametrize("name", PACKAGES)
def test_what_import_star_leaves_out_is_an_attribute(name):
    module = importlib.import_module(name)
    left_out = getattr(module, "NOT_STARRED", ())
    assert not set(left_out) & set(module.__all__)
    for public in left_out:
        assert getattr(module, public) is not None


def test_the_top_has_what_a_controller_of_ones_own_needs():
    for name in ("Controller", "Signal", "SampledLaw", "TuningParameter", "Contact"):
        assert inspect.isclass(getattr(mbcasadi, name))
        assert name in mbcasadi.__all__


def test_star_imports_of_several_packages_do_not_hide_each_other():
    """One name means one thing in all packages."""
    meaning: dict[str, object] = {}
    for name in PACKAGES:
        module = importlib.import_module(name)
        for public in module.__all__:
            value = getattr(module, public)
            assert meaning.setdefault(public, value) is value, f"{public} of {name}"
