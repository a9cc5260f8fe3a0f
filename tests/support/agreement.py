"""Assert that a model agrees with MuJoCo, with the quantity and the model in the message."""

import math
from pathlib import Path

from mbcasadi import mjcf
from mbcasadi.system import read_mjcf
from mbcasadi.validation.agreement import agreement_with_mujoco

STATES = 6
STATES_OF_LARGE_MODELS = 3
FRAMES = 2  # sites, and as many bodies
LARGE = 40  # degrees of freedom


def assert_agrees(label: str, source: str | Path, losses: dict[str, str] | None = None) -> None:
    """Assert that all quantities agree, apart from refused members (name → words of the reason)."""
    system, (model, _) = read_mjcf(source), mjcf.load(source)
    states = STATES if system.nv < LARGE else STATES_OF_LARGE_MODELS
    results = agreement_with_mujoco(system, model, states=states, frames=FRAMES)
    losses = losses or {}
    absent = {result.quantity: result.note for result in results if math.isnan(result.error)}
    assert absent.keys() == losses.keys(), f"{label}: refused {absent}, expected {losses}"
    for member, words in losses.items():
        assert words in absent[member], f"{label}: {absent[member]}"
    wrong = [
        f"{label}: {result.quantity} [{result.unit}] is off by {result.error:.1e} "
        f"at state {result.state}"
        for result in results
        if result.quantity not in losses and not result.agrees
    ]
    assert not wrong, "\n".join(wrong)
    assert len(results) > len(losses), f"{label}: nothing was compared"
