"""The Functions around a plan: the plan as an output, what it begins with, and who follows it."""

from dataclasses import replace

import casadi as ca

from mbcasadi.description import Signal
from mbcasadi.mpc.rti.controller import STAGEWISE
from mbcasadi.mpc.rti.iteration import RealTimeIteration
from mbcasadi.mpc.whole_body.following import Following
from mbcasadi.mpc.whole_body.horizon_references import HorizonReferences
from mbcasadi.qp.solver import controller_fun


def with_plan(iteration: RealTimeIteration) -> RealTimeIteration:
    """Return the real-time iteration with a further output, its plan."""
    controller = iteration.controller
    stages, prediction = controller.stages, controller.prediction
    assert stages is not None
    assert prediction is not None
    finish = stages.finish
    inputs = {key: ca.MX.sym(key, finish.sparsity_in(key)) for key in finish.name_in()}
    outputs = finish(**inputs)
    of_plan = {key: (inputs | outputs)[key] for key in prediction.name_in()}
    X, U = prediction.call([of_plan[key] for key in prediction.name_in()])
    named = {key: outputs[key] for key in finish.name_out()}
    named["plan"] = ca.vertcat(ca.vec(X[:, :-1]), ca.vec(U))
    ended = ca.Function("finish", [*inputs.values()], [*named.values()], [*inputs], [*named])
    stages = replace(stages, finish=ended)
    nx, nu, N = iteration.ocp.nx, iteration.ocp.nu, iteration.ocp.horizon
    states, u = iteration.ocp.names("x"), iteration.ocp.names("u")
    names = [f"{x}[{k}]" for k in range(N) for x in states]
    names += [f"{each}[{k}]" for k in range(N) for each in u]
    signal = Signal("plan", tuple(names), ("",) * (N * (nx + nu)))
    return replace(
        iteration,
        controller=replace(
            controller,
            function=controller_fun(controller.name, stages, STAGEWISE),
            stages=stages,
            outputs=(*controller.outputs, signal),
        ),
    )


def references_fun(name: str, refs: HorizonReferences, following: Following) -> ca.Function:
    """Return (q, v, command, plan, age, t, z) → (first_q, first_v, ref, z_next)."""
    asked = refs.function("asked")
    q, v, command, t, z = (ca.MX.sym(key, asked.sparsity_in(key)) for key in asked.name_in())
    plan, age = ca.MX.sym("plan", following.size), ca.MX.sym("age")
    first = following.predicted(plan, q, v, age, t)
    return ca.Function(
        name,
        [q, v, command, plan, age, t, z],
        [*first, *asked(q, v, command, t, z)],
        ["q", "v", "command", "plan", "age", "t", "z"],
        ["first_q", "first_v", "ref", "z_next"],
    )


def planner_fun(
    name: str, references: ca.Function, follow: ca.Function, periods: tuple[float, float]
) -> ca.Function:
    """Return (q, v, command, u, age, t, z) → (ref, [mask], outer_*, z_next)."""
    names = {key: "u" if key == "plan" else key for key in references.name_in()}
    inputs = {names[key]: ca.MX.sym(key, references.sparsity_in(key)) for key in names}
    slow, fast = periods
    since = inputs["t"] - slow * ca.floor(inputs["t"] / slow + 0.25 * fast / slow)
    asked = references(**{key: inputs[name] for key, name in names.items()})
    followed = follow(plan=inputs["u"], age=inputs["age"], t=inputs["t"])
    outputs = {key: followed[key] for key in follow.name_out()}
    outputs |= {"outer_q": asked["first_q"], "outer_v": asked["first_v"], "outer_ref": asked["ref"]}
    outputs["z_next"] = ca.if_else(since < fast / 2, asked["z_next"], inputs["z"])
    return ca.Function(name, [*inputs.values()], [*outputs.values()], [*inputs], [*outputs])
