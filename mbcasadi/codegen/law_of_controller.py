"""From a controller, or a bare Function, to the law that is exported: checks, names, ports."""

import casadi as ca

from mbcasadi.codegen.c_interface import CLaw, Port, Solver, rows_function
from mbcasadi.codegen.constant_rows import constant_rows_of
from mbcasadi.codegen.names import require_export_name
from mbcasadi.codegen.precision import Real, range_of
from mbcasadi.codegen.stage_functions import (
    between_functions,
    patterns,
    rename_function,
    stage_functions,
    without_rows,
)
from mbcasadi.description import Controller, Signal
from mbcasadi.description.safe_command import safe_command
from mbcasadi.errors import ExportError
from mbcasadi.shapes import column

EMERGENCY_NAMES = (["memory", "missed"], ["u", "memory_next"])
"""Inputs and outputs of `Emergency.function`."""


def require_emergency(controller: Controller) -> None:
    """Raise `ExportError` where `Controller.emergency` does not fit the controller."""
    emergency = controller.emergency
    if emergency is None:
        return
    f, nz = emergency.function, controller.z0.size
    held, nu = int(f.numel_in(0)) if f.n_in() else 0, controller.u_min.size
    names = f.name_in(), f.name_out()
    if names != EMERGENCY_NAMES or not f.is_a("SXFunction"):
        raise ExportError(
            f"the emergency Function of controller {controller.name!r} is {f}; expected "
            "(memory, missed) -> (u, memory_next), in SX"
        )
    sizes = [int(f.numel_in(1)), int(f.numel_out(0)), int(f.numel_out(1))]
    if sizes != [1, nu, held] or not 0 <= emergency.first <= nz - held:
        raise ExportError(
            f"the emergency Function of controller {controller.name!r} is {f}, its memory from row "
            f"{emergency.first} of z on; expected missed[1], u[{nu}], memory and memory_next of "
            f"one size, inside the {nz} rows of z"
        )


def rename_emergency(function: ca.Function, name: str) -> ca.Function:
    """Return the Function under another name; its C keeps all it needs on the stack."""
    inputs = function.sx_in()
    outputs = [ca.densify(output) for output in function.call(inputs)]
    return ca.Function(name, inputs, outputs, function.name_in(), function.name_out())


def law_from_function(function: ca.Function, name: str | None, real: Real = "double") -> CLaw:
    """Return a bare Function as a law without state."""
    symbol = require_export_name(name or function.name())
    return CLaw(
        name=symbol,
        inputs=_ports(function, "in", ()),
        outputs=_ports(function, "out", ()),
        functions=(rename_function(function, f"{symbol}_law", patterns(function)),),
        real=real,
    )


def law_from_controller(
    controller: Controller, name: str | None, solver: Solver, real: Real = "double"
) -> CLaw:
    """Return a controller as a law, after checking that its parts fit together.

    Raises:
        ExportError: names or sizes of the stages, limits or state contradict the Function.
    """
    symbol = require_export_name(name or controller.name)
    function = controller.function
    _check_state(controller)
    violation = controller.contract_violation()
    if violation:
        raise ExportError(f"controller {controller.name!r} has {violation}")
    require_emergency(controller)
    if real == "float" and controller.needs_double:
        raise ExportError(
            f"controller {controller.name!r} is exported in float, and {controller.needs_double}; "
            'export it with real="double"'
        )
    functions = stage_functions(controller, symbol)
    staged = controller.stages is not None
    cones = 0 if controller.stages is None else controller.stages.cones
    horizon = None if controller.stages is None else controller.stages.horizon
    if horizon is not None and (solver, real) != ("mbcasadi", "double"):
        raise ExportError(
            f"controller {controller.name!r} solves a problem over a horizon, exported with "
            f"solver={solver!r}, real={real!r}; expected 'mbcasadi' and 'double'"
        )
    if staged and solver == "daqp" and real == "float":
        raise ExportError(
            f"controller {controller.name!r} is exported in float, and DAQP's library computes in "
            'double; export it with solver="mbcasadi"'
        )
    if cones and solver == "daqp":
        raise ExportError(
            f"controller {controller.name!r} has {cones} quadratic cones, and DAQP takes linear "
            'rows only; export it with solver="mbcasadi"'
        )
    between, between_rows = between_functions(controller, symbol)
    rows = (
        constant_rows_of(rows_function(functions), range_of(real))
        if staged and not (cones or between or horizon)
        else None
    )
    if rows is not None:
        functions = tuple(without_rows(stage) for stage in functions)
    nu = function.numel_out("u") if "u" in function.name_out() else controller.u_min.size
    emergency = controller.emergency
    return CLaw(
        name=symbol,
        inputs=_ports(function, "in", controller.inputs),
        outputs=_ports(function, "out", controller.outputs),
        functions=functions,
        between=between,
        between_rows=between_rows,
        u_min=column("u_min", controller.u_min, nu, finite=False),
        u_max=column("u_max", controller.u_max, nu, finite=False),
        z0=column("z0", controller.z0, controller.z0.size),
        period=float(controller.period),
        staged=staged,
        rows=rows,
        solver=solver,
        source=controller.source,
        notes=tuple(sorted(controller.notes.items())),
        tuning=controller.tuning,
        parameters=controller.parameters,
        defaults=controller.defaults,
        u_safe=safe_command(controller),
        emergency=None
        if emergency is None
        else rename_emergency(emergency.function, f"{symbol}_emergency"),
        held_first=0 if emergency is None else emergency.first,
        cones=cones,
        horizon=horizon,
        statuses=controller.statuses,
        safe_statuses=controller.safe_statuses,
        real=real,
        sensors=controller.sensors,
    )


def _ports(function: ca.Function, side: str, signals: tuple[Signal, ...]) -> tuple[Port, ...]:
    names = function.name_in() if side == "in" else function.name_out()
    signal_of = {signal.name: signal for signal in signals}
    if signals and tuple(s.name for s in signals) != tuple(names):
        raise ExportError(
            f"the controller describes the signals {tuple(signal_of)}, "
            f"its Function has {tuple(names)}: name the same signals in the same order"
        )
    ports = []
    for i, name in enumerate(names):
        pattern = function.sparsity_in(i) if side == "in" else function.sparsity_out(i)
        size = int(pattern.nnz())
        signal = signal_of.get(name, Signal(name, (), ()))
        for label, labels in (("components", signal.components), ("units", signal.units)):
            if labels and len(labels) != size:
                raise ExportError(
                    f"signal {name!r} has {len(labels)} {label}, its Function has {size} entries"
                )
        default = float(function.default_in(i)) if side == "in" else 0.0
        default = 1.0 if side == "in" and signals and name == "mask" else default
        ports.append(Port(name, pattern, tuple(signal.components), tuple(signal.units), default))
    return tuple(ports)


def _check_state(controller: Controller) -> None:
    function, nz = controller.function, controller.z0.size
    sizes = [
        int(function.numel_in("z")) if "z" in function.name_in() else 0,
        int(function.numel_out("z_next")) if "z_next" in function.name_out() else 0,
    ]
    if sizes != [nz, nz]:
        raise ExportError(
            f"controller {controller.name!r}: z0 has {nz} numbers, the Function's z has "
            f"{sizes[0]} and z_next {sizes[1]}; they must agree"
        )
