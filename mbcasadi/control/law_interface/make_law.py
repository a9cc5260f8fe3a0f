"""A control law from its equations: a guard in front of them, limits behind.

A law is given as expressions of a safe state; `make_law` turns them into one named Function that
becomes C as it is. Its signature is

    (q, v, [act], [f_c], ref, [tuning], [p], [mask], z) → (u, z_next, status, flags, residual)

- `ref`: the references, in the slices that `Law.reference_slices` names.
- `tuning`: numbers that may change between ticks, where the law has them.
- `p`: physical parameters, where the system has them; what no mechanism has is bad input.
- `act`: (na,) activation states of the actuators, of laws that know them.
- `f_c`: (nv,) measured constraint force, where the law uses one.
- `mask`: one entry for each constraint of the model, above one half for on, where the system has a
  mask.
- `status`: 0 the equations hold; 1 u is saturated at its limits; 2 the desired motion or force is
  unattainable and u is the nearest; 3 bad input (NaN, infinity, an active loop that is far open), u
  is the safe output; 4 the equations have no unique solution (an inertia that is singular along a
  free motion) or the arithmetic failed, u is the safe output.
- `flags`: the bit SATURATED where u was clipped to its limits, GATED where a measurement was
  rejected; see `Flag`.
- `residual`: what is missing from the desired motion or force, in the law's own terms.

u never leaves its limits, whatever the inputs are. The safe output is that of
`control/safe_output`: the last solved command while it is young, then each actuator holds; another
one by `with_fallback`. z is the law's state, which keeps its value there, then what the safe output
remembers.
"""

from collections.abc import Callable, Mapping, Sequence

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.fallback import (
    CORE,
    Core,
    no_force_at,
    start_of,
    with_memory,
)
from mbcasadi.control.law_interface.law import Array, Command, Law, LawInputs, LawInterface
from mbcasadi.control.law_interface.options import LAW_OPTIONS, LawOptions
from mbcasadi.control.law_interface.safe_inputs import (
    close_inputs,
    finite_state,
    safe_inputs,
)
from mbcasadi.control.law_interface.signals import (
    monitors,
    signals_in,
    signals_out,
    with_components,
)
from mbcasadi.control.safe_output.mechanism_hold import hold_at
from mbcasadi.control.safe_output.safe_output import DESCRIPTIONS, SafeOutput
from mbcasadi.control.tasks.reference import fill_reference
from mbcasadi.control.tick.inputs import input_symbols
from mbcasadi.description import Controller, TuningParameter
from mbcasadi.description.status import LAW_STATUS, Flag, Status
from mbcasadi.errors import ProblemError
from mbcasadi.qp.input_guard import LARGEST_CONTROL, clamp, is_bounded, is_saturated
from mbcasadi.shapes import real_array, require_identifier, require_shape
from mbcasadi.system import System
from mbcasadi.system.coordinates import equality_groups, moving_size
from mbcasadi.system.ranges import require_ranges


@checked
def make_law(
    system: System,
    name: str,
    equations: Callable[[LawInputs], Command],
    interface: LawInterface | None = None,
    options: LawOptions = LAW_OPTIONS,
) -> Law:
    """Return the law that evaluates `equations` behind a guard and within limits.

    Args:
        system: the mechanism; a system with a mask gives the law one.
        name: a C identifier, where the options have none.
        equations: from safe inputs to the command.
        interface: its reference, states and further inputs; none by default.
        options: period, limits of u and name; what `rank_tol` means is for the equations.

    Raises:
        ProblemError: no actuators, a constraint that depends on time, a name that is no C
            identifier, limits that contradict each other.
    """
    name, period = options.name or name, options.sample_time
    wanted = LawInterface() if interface is None else interface
    slots, tuning = wanted.slots, wanted.tuning
    _require(system, name, wanted.knows_activations)
    limits = require_ranges(system, options.ctrl_limits, None).ctrl
    initial = {key: np.atleast_1d(real_array(key, x)) for key, x in wanted.states.items()}
    z0 = np.concatenate([np.zeros(0), *initial.values()])
    _require_tuning(tuning)
    symbols = input_symbols(
        system,
        {"f_c": system.nv} if wanted.measures_force else {},
        ref=sum(slot.size for slot in slots),
        tuning=len(tuning),
        mask=None if system.mask is None else len(equality_groups(system)[0]),
        z=z0.size,
    )
    at, valid, accepted = safe_inputs(system, symbols, slots, tuning, initial)
    measured = at
    if wanted.closes_state:
        at, closed = close_inputs(system, at)
        valid, accepted = ca.logic_and(valid, closed), ca.logic_and(accepted, closed)
    command = equations(at)
    require_shape("u of the equations", command.u, (system.nu, 1), "(nu, 1)")
    is_closed = wanted.closes_state and system.nc and command.error is not None
    tracked = equations(measured) if is_closed else command
    z_next = ca.vertcat(ca.SX(0, 1), *(command.z_next.get(key, at.z[key]) for key in initial))
    outputs = _outputs(command, z_next, finite_state(symbols["z"], z0), valid, limits)
    core = _core(
        system, name, symbols, outputs | _held(system, at, period), accepted, limits, period
    )
    remembered = core.safe.components
    controller = Controller(
        name=name,
        function=core.complete(name),
        inputs=with_components(
            signals_in(system, slots, tuning, initial, symbols), {"z": remembered}
        ),
        outputs=with_components(signals_out(system, initial, command), {"z_next": remembered}),
        u_min=limits[:, 0],
        u_max=limits[:, 1],
        z0=np.append(z0, core.safe.z0),
        period=period,
        source=system.name,
        statuses=LAW_STATUS.texts,
        safe_statuses=LAW_STATUS.safe,
        notes={"status": LAW_STATUS.summary(DESCRIPTIONS["safe"])} | dict(wanted.notes),
        monitor=_monitor(tracked, symbols, core.safe.size),
        monitors=monitors(wanted.tracked) if command.error is not None else (),
        tuning=tuple(tuning),
        parameters=system.parameters.entries,
        emergency=core.safe.emergency(z0.size),
    )

    def desired() -> ca.Function:
        own = _desired_fun(f"{name}_desired", command, symbols, z_next)
        return with_memory(own, z0.size, 0, core.safe.size)

    return Law(
        controller=controller,
        slots=tuple(slots),
        system=system,
        core=core,
        make_desired=desired,
        hold=wanted.hold,
        default=None if wanted.default is None else fill_reference(slots, wanted.default),
    )


def _require(system: System, name: str, knows_activations: bool) -> None:
    if system.nu == 0:
        raise ProblemError(f"'{system.name}' has no actuators; expected at least one")
    if system.na and not knows_activations:
        raise ProblemError(
            f"'{system.name}' has actuators with activation states, which this law does not know; "
            "use motors, InverseDynamicsQP, lqr or feedback"
        )
    if system.timed:
        raise ProblemError(
            f"'{system.name}' has constraints that depend on time; the law has no clock. Give the "
            "moving quantity as a reference"
        )
    require_identifier("name", name)


def _require_tuning(tuning: Sequence[TuningParameter]) -> None:
    names = [parameter.name for parameter in tuning]
    if len(set(names)) != len(names):
        raise ProblemError(f"tuning parameters {', '.join(names)}; expected different names")
    for parameter in tuning:
        if not (
            np.isfinite(parameter.default)
            and parameter.lower <= parameter.default <= parameter.upper
        ):
            raise ProblemError(
                f"tuning parameter '{parameter.name}': default {parameter.default} with bounds "
                f"{parameter.lower} to {parameter.upper}; expected lower <= default <= upper"
            )


def _held(system: System, at: LawInputs, period: float) -> dict[str, ca.SX]:
    """Return what the safe output needs of a state, by name."""
    return {
        "hold": hold_at(system, at.q, at.v, at.rows, period),
        "no_force": no_force_at(system, at.q, at.v, period),
        "state": ca.vertcat(at.q[: moving_size(system), 0], at.v, *at.ref.values()),
    }


def _core(
    system: System,
    name: str,
    symbols: Mapping[str, ca.SX],
    outputs: Mapping[str, ca.SX],
    accepted: ca.SX,
    limits: Array,
    period: float,
) -> Core:
    """Return the law without its safe output."""
    values = dict(outputs) | {"accepted": accepted}
    inputs = list(symbols.values())
    function = ca.Function(
        f"{name}_core",
        inputs,
        [ca.densify(values[key]) for key in CORE],
        list(symbols),
        list(CORE),  # equal terms are joined once, in `Core.complete`
    )
    hold = ca.Function("start", inputs, [values["hold"]], list(symbols), ["hold"])
    ends, start = (limits[:, 0], limits[:, 1]), start_of(system, hold)
    return Core(function, SafeOutput.of(system, "safe", ends, start, period))


def _outputs(
    command: Command, z_next: ca.SX, z: ca.SX, valid: ca.SX, limits: Array
) -> dict[str, ca.SX]:
    desired = ca.densify(command.u)
    residual = ca.densify(ca.vertcat(ca.SX(0, 1), *command.residual.values()))
    total = ca.sum1(ca.fabs(ca.vertcat(desired, residual)))
    finite = ca.logic_and(total <= LARGEST_CONTROL, is_bounded(z_next))  # false for NaN
    solved = ca.logic_and(command.solvable, finite)
    sound = ca.logic_and(valid, solved)
    valid = ca.logic_and(valid, command.trusted)
    usable = ca.logic_and(valid, solved)
    limited = clamp(desired, limits[:, 0], limits[:, 1])
    saturated = is_saturated(desired, limited)
    status = ca.if_else(saturated, Status.SATURATED, Status.SOLVED)
    status = ca.if_else(command.attainable, status, Status.UNATTAINABLE)
    status = ca.if_else(valid, ca.if_else(solved, status, Status.FAILED), Status.BAD_INPUT)
    flags = ca.if_else(usable, Flag.SATURATED * saturated, 0)
    return {
        "u": desired,
        "z_next": ca.densify(ca.if_else(sound, z_next, z)) if z.numel() else z,
        "status": status,
        "flags": flags + ca.if_else(sound, Flag.GATED * command.gated, 0),
        "residual": ca.densify(ca.if_else(usable, residual, 0)) if residual.numel() else residual,
        "usable": usable,
    }


def _desired_fun(
    name: str, command: Command, symbols: Mapping[str, ca.SX], z_next: ca.SX
) -> ca.Function:
    """Return the Function from the inputs to the desired acceleration, force and next state."""
    f_c = ca.SX.zeros(symbols["v"].numel()) if command.f_c is None else command.f_c
    return ca.Function(
        name,
        list(symbols.values()),
        [ca.densify(x) for x in (command.a, f_c, z_next)],
        list(symbols),
        ["a", "f_c", "z_next"],
        {"cse": True, "allow_duplicate_io_names": True},  # f_c measured, and f_c desired
    )


def _monitor(command: Command, symbols: Mapping[str, ca.SX], memory: int) -> ca.Function | None:
    if command.error is None:
        return None
    target = command.error * 0 if command.target is None else command.target
    monitor = ca.Function(
        "monitor",
        list(symbols.values()),
        [ca.densify(target), ca.densify(command.error)],
        list(symbols),
        ["target", "error"],
    )
    return with_memory(monitor, symbols["z"].numel(), 0, memory)
