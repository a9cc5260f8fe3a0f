"""Sensor readings of our own, rigid motion: what sensors will show under known forces."""

from collections.abc import Sequence
from typing import Unpack

import casadi as ca

from mbcasadi import constraints, model
from mbcasadi.argument_kinds import checked
from mbcasadi.description.sensors import SENSED_SOLVER
from mbcasadi.dynamics.formulations import DEFAULT, FormulationOptions
from mbcasadi.dynamics.forward import forward_dynamics
from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.system import System, evaluate
from mbcasadi.system.parametric import takes_parameters
from mbcasadi.system.sensor_functions import WRENCH, require_tree, sensed_state, solver_size

NOT_OF_TENDONS = ("wrenches", "solver", "t")


@checked
@takes_parameters
def predicted_readings(
    system: System,
    sensors: Sequence[str] | None = None,
    formulation: str = DEFAULT,
    *,
    derivatives: bool = True,
    **options: Unpack[FormulationOptions],
) -> ca.Function:
    """Return (q, v, f, [u], [act], wrenches, [t], [mask]) → (y, a, lam), readings of rigid motion.

    `forward_dynamics` gives a and lam under `f + actuator_force(q, v, u) + Σ J_bᵀ w_b`; the sensors
    read this a, and the wrenches with those of the constraints, `constraint_wrenches(q, lam)`, and
    of spatial tendons, `tendon_wrenches(q, v, a, [u], [act])`.
    MuJoCo's constraints are soft: `validation.agreement.sensor_gaps` has the difference.

    Forces inside a loop with redundant rows are those of the lam of minimum norm. Rows that were
    added with `with_rows` move the mechanism; their forces act on no body that a sensor knows.

    Args:
        system: read from a model.
        sensors: names, one below the other in y; by default all of `sensor_names` but those that
            read what MuJoCo's solver did, touch and limits.
        formulation, derivatives, options: as in `forward_dynamics`.

    Raises:
        UnknownNameError: no such sensor or formulation; the message lists the valid names.
        UnsupportedFeatureError: a sensor that has no Function, or reads what MuJoCo's solver did;
            refused dynamics.
        ProblemError: the system is given by equations.
    """
    kinds = {sensor.name: sensor.kind for sensor in system.sensors}
    of_solver = [name for name in system.sensor_names if kinds[name] in SENSED_SOLVER]
    names = [n for n in system.sensor_names if n not in of_solver] if sensors is None else sensors
    for name in set(names) & set(of_solver):
        raise UnsupportedFeatureError(
            f"{system.name}: sensor '{name}' ({kinds[name]}) reads what MuJoCo's solver did, which "
            "no rigid motion predicts; read it from the plant (Plant.sensor)"
        )
    readings = [system.sensor(name) for name in names]
    motion = forward_dynamics(system, formulation, derivatives=derivatives, **options)
    loads, reactions = wrench_force(system), constraint_wrenches(system)
    tensions = tendon_wrenches(system)
    inputs = _inputs(system, motion)
    drive = [name for name in ("q", "v", "u", "act") if name in inputs]
    actuators: dict[str, ca.MX] = {name: inputs[name] for name in drive}
    f = inputs["f"] + loads(inputs["q"], inputs["wrenches"])
    if system.nu:
        f = f + evaluate(system.actuator_force, actuators)
    moved = motion(**{name: inputs[name] for name in motion.name_in()} | {"f": f})
    sensed = {n: x for n, x in inputs.items() if n not in ("f", "mask")} | {"a": moved["a"]}
    inner = reactions(inputs["q"], moved["lam"]) + evaluate(tensions, sensed)
    sensed["wrenches"] = inputs["wrenches"] + inner
    sensed["solver"] = ca.MX.zeros(solver_size(system))
    y = ca.vertcat(ca.MX(0, 1), *(evaluate(reading, sensed) for reading in readings))
    return ca.Function(
        "predicted_readings",
        list(inputs.values()),
        [y, moved["a"], moved["lam"]],
        list(inputs),
        ["y", "a", "lam"],
    )


@checked
@takes_parameters
def constraint_wrenches(system: System) -> ca.Function:
    """Return (q, lam) → (wrenches), (6, nbody): what the multipliers do to the bodies.

    Force, N, above moment about the body's origin, N m, world axes, of connect and weld
    constraints and of couplings of spatial tendons; other rows act on no body. `Σ J_bᵀ w_b =
    Aᵀ lam` for the rows of these. A row that the mask switches off has the multiplier zero.

    Raises:
        ProblemError: the system is given by equations.
        UnsupportedFeatureError: a constraint of the model has no equation.
    """
    require_tree(system.tree, system.name)
    system.require_available("constraint_jacobian")

    def build() -> ca.Function:
        q, lam = ca.SX.sym("q", system.nq), ca.SX.sym("lam", system.nc)
        numbers = system.numbers_at(q)
        parts = numbers.tree, numbers.equalities
        wrenches = constraints.constraint_wrenches(*parts, q, lam)
        options = {"cse": True}
        return ca.Function(
            "constraint_wrenches", [q, lam], [wrenches], ["q", "lam"], ["wrenches"], options
        )

    return system.cached_function("constraint_wrenches", build)


@checked
@takes_parameters
def tendon_wrenches(system: System) -> ca.Function:
    """Return (q, v, a, [u], [act]) → (wrenches), (6, nbody): what spatial tendons do to the bodies.

    Force, N, above moment about the body's origin, N m, world axes, of springs, dampers, actuators
    and armature along the tendons' paths. `Σ J_bᵀ w_b` is their share of passive force and actuator
    force less that of `M a + h`; joints that clip their actuator force, and MuJoCo's M, which has
    no armature between branches, apart.

    Raises:
        ProblemError: the system is given by equations.
        UnsupportedFeatureError: passive forces or actuators of the model have no equation.
    """
    require_tree(system.tree, system.name)
    system.require_available("passive_force", *(["actuator_force"] if system.nu else []))

    def build() -> ca.Function:
        state, inputs = sensed_state(system)
        inputs = {name: x for name, x in inputs.items() if name not in NOT_OF_TENDONS}
        wrenches = model.tendon_wrenches(state)
        symbols, names = list(inputs.values()), list(inputs)
        options = {"cse": True}
        return ca.Function("tendon_wrenches", symbols, [wrenches], names, ["wrenches"], options)

    return system.cached_function("tendon_wrenches", build)


@checked
@takes_parameters
def wrench_force(system: System) -> ca.Function:
    """Return (q, wrenches) → (f), `f = Σ J_bᵀ w_b` (nv,): external wrenches on the joints.

    Raises:
        ProblemError: the system is given by equations.
    """
    require_tree(system.tree, system.name)

    def build() -> ca.Function:
        state, _ = sensed_state(system)
        symbols = [state.q, state.wrenches]
        force = model.generalised_force(state)
        return ca.Function("wrench_force", symbols, [force], ["q", "wrenches"], ["f"])

    return system.cached_function("wrench_force", build)


def _inputs(system: System, motion: ca.Function) -> dict[str, ca.MX]:
    """Return symbols of all inputs, by name."""
    tree = require_tree(system.tree, system.name)
    sizes = {name: (motion.size1_in(name), 1) for name in ("q", "v", "f")}
    sizes |= {"u": (system.nu, 1)} if system.nu else {}
    sizes |= {"act": (system.na, 1)} if system.na else {}
    sizes["wrenches"] = (WRENCH, len(tree.bodies))
    clocked = any(sensor.kind == "clock" for sensor in system.sensors)
    sizes |= {"t": (1, 1)} if clocked or system.timed else {}
    sizes |= {} if system.mask is None else {"mask": (system.nc, 1)}
    return {name: ca.MX.sym(name, *size) for name, size in sizes.items()}
