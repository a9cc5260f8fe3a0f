"""A law with another safe output."""

from dataclasses import replace

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.fallback import Core, with_memory
from mbcasadi.control.law_interface.law import Law
from mbcasadi.control.law_interface.signals import with_components
from mbcasadi.control.safe_output.safe_output import DESCRIPTIONS, FALLBACKS
from mbcasadi.description import Signal
from mbcasadi.description.status import LAW_STATUS
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import require_choice, require_kind
from mbcasadi.system.coordinates import moving_size


@checked
def with_fallback(law: Law, fallback: str | ca.Function) -> Law:
    """Return a law or regulator with another safe output.

    Args:
        law: of plain arithmetic; for `within_limits` change it first.
        fallback: "safe", the definition of `control/safe_output`, which every law has at first;
            "hold", the last command; "zero" actuator force; or a Function (q, v, ref) → (u), whose
            inputs are finite whatever was measured.

    Raises:
        ProblemError: no such choice, a Function of other sizes, or a law that holds a QP.
    """
    require_kind("law", law, Law, "a function of control.laws makes one")
    controller, core = law.controller, law.core
    if controller.stages is not None:
        raise ProblemError(
            f"law '{controller.name}' holds a QP; expected with_fallback first, then within_limits"
        )
    if isinstance(fallback, ca.Function):
        _require_sizes(law, fallback)
        chosen = core.with_safe("law", fallback)
    else:
        require_choice("fallback", fallback, FALLBACKS)
        chosen = core.with_safe(fallback, None)
    sizes = core.nz, core.safe.size, chosen.safe.size
    monitor = controller.monitor
    return replace(
        law,
        core=chosen,
        make_desired=lambda: with_memory(law.desired, *sizes),
        controller=replace(
            controller,
            function=chosen.complete(controller.name),
            inputs=_signals(controller.inputs, core, chosen),
            outputs=_signals(controller.outputs, core, chosen),
            z0=np.append(controller.z0[: core.nz], chosen.safe.z0),
            notes=controller.notes | {"status": LAW_STATUS.summary(DESCRIPTIONS[chosen.safe.kind])},
            monitor=None if monitor is None else with_memory(monitor, *sizes),
            emergency=chosen.safe.emergency(core.nz),
        ),
    )


def _signals(signals: tuple[Signal, ...], before: Core, after: Core) -> tuple[Signal, ...]:
    """Return the signals with the names of another memory in z and z_next."""
    nz = before.nz
    own = tuple(
        Signal(each.name, each.components[:nz], each.units[:nz])
        if each.name in ("z", "z_next")
        else each
        for each in signals
    )
    return with_components(own, dict.fromkeys(("z", "z_next"), after.safe.components))


def _require_sizes(law: Law, fallback: ca.Function) -> None:
    """Raise unless a Function takes (q, v, ref) and returns u."""
    system = law.system
    nq = moving_size(system)
    nref = law.core.function.numel_out("state") - nq - system.nv
    expected = (nq, system.nv, nref)
    sizes = tuple(fallback.numel_in(i) for i in range(fallback.n_in()))
    if sizes != expected or fallback.n_out() < 1 or fallback.numel_out(0) != system.nu:
        raise ProblemError(
            f"fallback {fallback}; expected (q[{expected[0]}], v[{expected[1]}], "
            f"ref[{expected[2]}]) -> (u[{system.nu}])"
        )
