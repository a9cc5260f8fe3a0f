"""The solution as an object, from the outputs of a controller and its inspection."""

from collections.abc import Mapping

from mbcasadi.control.inverse_dynamics.options import Array, Setup
from mbcasadi.control.inverse_dynamics.priorities.levels import levels_of
from mbcasadi.control.inverse_dynamics.solution import CondensedQP, InverseDynamicsSolution
from mbcasadi.control.inverse_dynamics.tick import Stages
from mbcasadi.control.limits.soft_limits import soft_rows
from mbcasadi.description.status import FLAG_BITS, QP_STATUS, Flag


def solution_of(
    setup: Setup, stages: Stages, outputs: Mapping[str, Array], state: Mapping[str, Array]
) -> InverseDynamicsSolution:
    """Return the solution of a tick.

    Args:
        setup: the options.
        stages: of the controller.
        outputs: of its Function, by name.
        state: of its inspection at the solver's candidate, by name.
    """
    code = int(outputs["status"][0])
    return InverseDynamicsSolution(
        u=outputs["u"],
        z_next=outputs["z_next"],
        status=code,
        status_text=QP_STATUS.words[code],
        flags=Flag(int(outputs["flags"][0])),
        residual=outputs["residual"],
        problem=CondensedQP.of(state, stages.about, stages.qp.cones),
        a=state["a"].ravel(),
        lam=state["lam"].ravel(),
        determined=state["determined"].ravel() > 0,
        contact_forces=state["contact_force"].reshape(-1, 3),
        p=state["p"].ravel(),
        independent_rows=state["independent_rows"].ravel(),
        violations=state["violation"].ravel(),
        disturbance=state["disturbance"].ravel(),
        relaxed=_relaxed(setup, stages, outputs),
        levels=_level_errors(setup, outputs),
    )


def _level_errors(setup: Setup, outputs: Mapping[str, Array]) -> dict[str, float]:
    """Return the error of each level by its name."""
    names = [level.name for level in levels_of(setup)]
    return dict(zip(names, outputs["levels"].tolist(), strict=True)) if names else {}


def _relaxed(setup: Setup, stages: Stages, outputs: Mapping[str, Array]) -> dict[str, float]:
    """Return the soft rows that are violated, and by how much."""
    soft = soft_rows(stages.about, setup.soft)
    bits = [int(word) >> n & 1 for word in outputs.get("relaxed", ()) for n in range(FLAG_BITS)]
    return {each.about.name: float(outputs["slack"][i]) for i, each in enumerate(soft) if bits[i]}
