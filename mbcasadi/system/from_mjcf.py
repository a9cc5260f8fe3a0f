"""From a MuJoCo model to a `System`."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from mbcasadi import constraints, mjcf, model
from mbcasadi.argument_kinds import checked
from mbcasadi.description import Actuator, RigidTree
from mbcasadi.description.parameters import NO_PARAMETERS, Parameters
from mbcasadi.mjcf import Source
from mbcasadi.system.functions import Builder
from mbcasadi.system.limits import Array, Limits, infinite_ranges
from mbcasadi.system.model_numbers import ModelNumbers
from mbcasadi.system.numbers_at_parameters import numbers_at, with_constants
from mbcasadi.system.parameter_choice import chosen_parameters
from mbcasadi.system.parametric_system import expose_parameters
from mbcasadi.system.pieces import kinetic_energy, rate_of, total_energy
from mbcasadi.system.system import System

MemberData = tuple[str, dict[str, ca.SX], str, Callable[[], ca.SX]]


@checked
def read_mjcf(
    source: Source, *, switchable: bool = False, parameters: Sequence[str] = ()
) -> System:
    """Read a MuJoCo model into exact, differentiable CasADi Functions.

    The model always passes through MuJoCo's own compiler. Equality constraints that the file
    switches off (`active="false"`) have no rows, unless `switchable` is set.

    Args:
        source: path of an MJCF or URDF file, the name of a model of the package (`models.names()`),
            XML text, `mujoco.MjSpec` or `mujoco.MjModel`.
        switchable: every equality constraint has rows, and the dynamics take a `mask` of active
            rows; `system.mask` holds the rows that the file switches on.
        parameters: physical parameters that become an input p of the members, by patterns:
            "body:forearm:mass", "body:*:com", "joint:*:damping", "equality:loop:anchor",
            "gravity"; see `docs/guides/parameters.md` for all of them.

    Returns:
        The system; `system.coverage` lists the treatment of each feature of the model.

    Raises:
        ModelError: the file is missing, or MuJoCo's compiler refuses it (its message is kept).
        UnsupportedFeatureError: a feature would make the equations wrong.
        UnknownNameError: a pattern matches no parameter; the message lists those there are.
    """
    data = mjcf.read(source)
    active = tuple(e for e in data.equalities if switchable or e.active)
    mask = np.array([float(e.active) for e in active for _ in range(e.size)])
    tree, actuators = data.tree, data.actuators
    numbers = ModelNumbers(tree, actuators, active)
    system = System(
        name=tree.name,
        nq=tree.nq,
        nv=tree.nv,
        nu=len(actuators),
        na=data.na,
        nc=sum(equality.size for equality in active) + data.refused_rows,
        builders=member_builders(numbers, data.na),
        limits=_limits(tree, actuators, data.joint_range),
        coverage=data.coverage,
        tree=tree,
        actuators=actuators,
        equalities=active,
        sensors=data.sensors,
        mask=np.append(mask, np.ones(data.refused_rows)) if switchable else None,
    )
    if not parameters:
        return system
    return _with_parameters(system, numbers, chosen_parameters(numbers, parameters, data.off))


def _with_parameters(system: System, numbers: ModelNumbers, chosen: Parameters) -> System:
    """Return a system with an input p."""
    tree = with_constants(numbers.tree, chosen.values)
    carried = replace(
        system,
        nq=tree.nq,
        tree=tree,
        builders=member_builders(replace(numbers, tree=tree), system.na, chosen),
        parameters=chosen,
        _cache={},
        _frames={},
    )
    return expose_parameters(system, carried)


def member_builders(
    numbers: ModelNumbers, na: int = 0, parameters: Parameters | None = None
) -> dict[str, Builder]:
    """Return a builder for each member Function of a model.

    Args:
        numbers: of the model.
        na: number of activation states.
        parameters: those that q has behind it; none by default.
    """
    chosen = parameters or NO_PARAMETERS
    return (
        _dynamics_builders(numbers, na, chosen)
        | _constraint_builders(numbers, chosen)
        | _manifold_builders(numbers.tree)
    )


def _dynamics_builders(
    numbers: ModelNumbers, na: int, parameters: Parameters
) -> dict[str, Builder]:
    q = ca.SX.sym("q", numbers.tree.nq)
    numbers = numbers_at(numbers, parameters, q)
    tree, actuators = numbers.tree, numbers.actuators
    v, u = ca.SX.sym("v", tree.nv), ca.SX.sym("u", len(actuators))
    act = ca.SX.sym("act", na)
    of_q, of_qv = {"q": q}, {"q": q, "v": v}
    of_B = of_qv if any(actuator.gain_moves for actuator in actuators) else of_q
    of_all = {"q": q, "v": v, "u": u} | ({"act": act} if act.numel() else {})
    state = act if act.numel() else None
    builders = _builders(
        ("mass_matrix", of_q, "M", lambda: model.mass_matrix(tree, q, actuators)),
        ("bias_force", of_qv, "h", lambda: model.bias_force(tree, q, v)),
        ("coriolis_matrix", of_qv, "C", lambda: model.coriolis_matrix(tree, q, v)),
        ("gravity_force", of_q, "g", lambda: model.gravity_force(tree, q)),
        ("potential_energy", of_q, "V", lambda: model.potential_energy(tree, q)),
        ("passive_force", of_qv, "f_passive", lambda: model.passive_force(tree, q, v, actuators)),
        (
            "actuation",
            of_B,
            "B",
            lambda: model.actuation(tree, actuators, q, v if "v" in of_B else None),
        ),
        ("actuator_bias", of_qv, "f_0", lambda: model.actuator_bias(tree, actuators, q, v)),
        (
            "actuator_force",
            of_all,
            "f_actuator",
            lambda: model.actuator_force(tree, actuators, q, v, u, state),
        ),
    )
    if act.numel():
        builders |= _builders(
            ("act_dot", of_all, "act_dot", lambda: model.act_dot(tree, actuators, q, v, u, act))
        )
    kinetic = kinetic_energy(builders["mass_matrix"], tree.nv)
    return builders | {
        "kinetic_energy": kinetic,
        "total_energy": total_energy(kinetic, builders["potential_energy"], tree.nv),
        "center_of_mass": lambda: model.center_of_mass_fun(tree, q),
        "momentum": lambda: model.momentum_fun(tree, q),
    }


def _constraint_builders(numbers: ModelNumbers, parameters: Parameters) -> dict[str, Builder]:
    q = ca.SX.sym("q", numbers.tree.nq)
    numbers = numbers_at(numbers, parameters, q)
    tree, equalities = numbers.tree, numbers.equalities
    v = ca.SX.sym("v", tree.nv)
    of_q, of_qv = {"q": q}, {"q": q, "v": v}
    jacobian, bias = constraints.jacobian, constraints.bias
    builders = _builders(
        ("constraint", of_q, "phi", lambda: constraints.residual(tree, equalities, q)),
        ("constraint_jacobian", of_q, "A", lambda: jacobian(tree, equalities, q)),
        ("constraint_bias", of_qv, "c", lambda: bias(tree, equalities, q, v)),
        ("loop_jacobian", of_q, "A", lambda: jacobian(tree, equalities, q, relative=True)),
        ("loop_bias", of_qv, "c", lambda: bias(tree, equalities, q, v, relative=True)),
    )
    return builders | {
        "constraint_rate": rate_of("constraint_rate", builders["constraint_jacobian"], tree.nv),
        "loop_rate": rate_of("loop_rate", builders["loop_jacobian"], tree.nv),
    }


def _manifold_builders(tree: RigidTree) -> dict[str, Builder]:
    q, q1 = ca.SX.sym("q", tree.nq), ca.SX.sym("q1", tree.nq)
    dv = ca.SX.sym("dv", tree.nv)
    return _builders(
        ("velocity_map", {"q": q}, "N", lambda: model.velocity_map(tree, q)),
        ("integrate", {"q": q, "dv": dv}, "q_next", lambda: model.integrate(tree, q, dv)),
        ("difference", {"q0": q, "q1": q1}, "dv", lambda: model.difference(tree, q, q1)),
    )


def _builders(*members: MemberData) -> dict[str, Builder]:
    """Return a builder for each (name, inputs, name of the output, expression when needed)."""

    def builder(
        name: str, inputs: dict[str, ca.SX], output: str, make: Callable[[], ca.SX]
    ) -> Builder:
        """Return the builder of one member.

        Args:
            name: of the member.
            inputs: symbols by name.
            output: name of the output.
            make: builds the expression when it is needed.
        """
        symbols, names = list(inputs.values()), list(inputs)
        return lambda: ca.Function(name, symbols, [make()], names, [output], {"cse": True})

    return {member[0]: builder(*member) for member in members}


def _limits(tree: RigidTree, actuators: tuple[Actuator, ...], joint_range: Array) -> Limits:
    scalar = [joint for joint in tree.joints if joint.kind in ("slide", "hinge")]
    joint_force = infinite_ranges(len(scalar))
    for row, joint in enumerate(scalar):
        if joint.force_range is not None:
            joint_force[row] = joint.force_range
    rows = [i for i, joint in enumerate(tree.joints) if joint.kind in ("slide", "hinge")]
    return Limits(
        ctrl=_ranges([actuator.ctrl_range for actuator in actuators]),
        force=_ranges([actuator.force_range for actuator in actuators]),
        joint=np.asarray(joint_range, dtype=float).reshape(-1, 2)[rows],
        joint_force=joint_force,
        joint_names=tuple(joint.name for joint in scalar),
    )


def _ranges(limits: list[tuple[float, float] | None]) -> Array:
    ranges = infinite_ranges(len(limits))
    for row, pair in enumerate(limits):
        if pair is not None:
            ranges[row] = pair
    return ranges
