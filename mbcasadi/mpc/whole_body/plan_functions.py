"""The Functions around a plan: the plan as an output, what it begins with, and who follows it."""

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from mbcasadi.control.inverse_dynamics.parts.force_feedback import MEASURED
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.control.tasks.task import Slot, Task
from mbcasadi.description import Contact, Signal
from mbcasadi.mpc.legged.ground_axes import common_normal
from mbcasadi.mpc.ocp.problem import STEP, OptimalControlProblem
from mbcasadi.mpc.ocp.stage import DISTURBANCE
from mbcasadi.mpc.rti.controller import STAGEWISE
from mbcasadi.mpc.rti.iteration import RealTimeIteration
from mbcasadi.mpc.rti.planned_motion import plan_at_samples
from mbcasadi.mpc.whole_body.contact_mask import contacts_on
from mbcasadi.mpc.whole_body.following import Following
from mbcasadi.mpc.whole_body.horizon_references import HorizonReferences
from mbcasadi.mpc.whole_body.standing import WALK
from mbcasadi.mpc.whole_body.static_references import static_references, with_static_references
from mbcasadi.qp.solver import controller_fun
from mbcasadi.shapes import unique
from mbcasadi.system import System


def with_plan(
    iteration: RealTimeIteration, system: System, contacts: Sequence[Contact] = ()
) -> RealTimeIteration:
    """Return the real-time iteration with a further output: its plan, and the disturbance in it.

    Where the lengths of its intervals are given, they are behind its controls. Which of some
    contacts, rows of a system, stand in each interval ends it.
    """
    controller = iteration.controller
    stages, prediction = controller.stages, controller.prediction
    assert stages is not None
    assert prediction is not None
    finish = stages.finish
    inputs = {key: ca.MX.sym(key, finish.sparsity_in(key)) for key in finish.name_in()}
    outputs = finish(**inputs)
    given = iteration.memory.moving is not None
    samples = plan_at_samples(iteration) if given else prediction
    of_plan = {key: (inputs | outputs)[key] for key in samples.name_in()}
    X, U, *lengths = samples.call([of_plan[key] for key in samples.name_in()])
    named = {key: outputs[key] for key in finish.name_out()}
    of_name = {slot.name: slot for slot in iteration.ocp.slots}
    slots = [of_name[name] for name in (DISTURBANCE, WALK) if name in of_name]
    places, N = slot_slices(iteration.ocp.slots), iteration.ocp.horizon
    further = [inputs["ref"][places[slot.name]] for slot in slots]
    P = ca.reshape(inputs["ref"], -1, N + 1)
    for k in range(N if contacts else 0):
        further.append(contacts_on(system, contacts, P[places["mask"], k]))
    named["plan"] = ca.vertcat(ca.vec(X[:, :-1]), ca.vec(U), *lengths, *further)
    ended = ca.Function("finish", [*inputs.values()], [*named.values()], [*inputs], [*named])
    stages = replace(stages, finish=ended)
    states, u = iteration.ocp.names("x"), iteration.ocp.names("u")
    names = [f"{x}[{k}]" for k in range(N) for x in states]
    names += [f"{each}[{k}]" for k in range(N) for each in u]
    names += [f"{STEP}[{k}]" for k in range(N)] if given else []
    names += [f"{slot.name}.{each}" for slot in slots for each in slot.components]
    feet = unique([contact.frame for contact in contacts])
    names += [f"{foot}.stands[{k}]" for k in range(N) for foot in feet]
    signal = Signal("plan", tuple(names), ("",) * len(names))
    return replace(
        iteration,
        controller=replace(
            controller,
            function=controller_fun(controller.name, stages, STAGEWISE),
            stages=stages,
            outputs=(*controller.outputs, signal),
            prediction=_at_time_of_rates(prediction, iteration.ocp),
        ),
    )


def _at_time_of_rates(prediction: ca.Function, ocp: OptimalControlProblem) -> ca.Function:
    """Return (…) → (x, u) with positions at the time of the rates, not half an interval ahead."""
    assert ocp.motion is not None
    assert ocp.system is not None
    inputs = {key: ca.MX.sym(key, prediction.sparsity_in(key)) for key in prediction.name_in()}
    X, U = prediction.call([*inputs.values()])
    nq, nv, count = ocp.system.nq, ocp.system.nv, X.shape[1]
    lengths = np.full(count, ocp.period)
    if (
        ocp.lengths is not None
    ):  # samples are one period apart: lengths of the intervals they are in
        within = np.searchsorted(ocp.times, ocp.period * np.arange(count), side="right") - 1
        lengths = ocp.lengths[np.clip(within, 0, ocp.horizon - 1)]
    back = X[nq : nq + nv, :] * ca.repmat(ca.DM(-lengths / 2).T, nv, 1)
    deviation = ca.vertcat(back, ca.MX.zeros(ocp.motion.moved.size1_in(1) - nv, count))
    outputs = [ocp.motion.moved.map(count)(X, deviation), U]
    names, twice = ["x", "u"], {"allow_duplicate_io_names": True}  # u is input and output
    return ca.Function("prediction", [*inputs.values()], outputs, [*inputs], names, twice)


def references_fun(
    name: str, refs: HorizonReferences, following: Following, tasks: Sequence[Task] = ()
) -> ca.Function:
    """Return the Function of a plan's references.

    It is (q, v, command, [disturbance], [f_measured], plan, age, t, z) → (first_q, first_v, ref,
    z_next). Behind its other entries the command has the references of tasks, sample by sample.
    """
    asked = refs.function("asked")
    inputs = {key: ca.MX.sym(key, asked.sparsity_in(key)) for key in asked.name_in()}
    slots = task_slots(refs.system, tasks)
    own, count = inputs["command"].numel(), sum(slot.size for slot in slots)
    command = ca.MX.sym("command", own + count * (refs.ocp.horizon + 1))
    inputs["command"] = command[:own]
    learns = any(signal.name == DISTURBANCE for signal in following.law.controller.outputs)
    known = inputs if learns else inputs | {DISTURBANCE: ca.MX.zeros(inputs[DISTURBANCE].shape)}
    plan, age, q, v, t = (
        ca.MX.sym("plan", following.size),
        ca.MX.sym("age"),
        *(inputs[key] for key in ("q", "v", "t")),
    )
    named = {"q": q, "v": v, "command": command}
    named |= {key: inputs[key] for key in (DISTURBANCE,) if learns}
    named |= {key: inputs[key] for key in (MEASURED,) if key in inputs}
    named |= {"plan": plan, "age": age, "t": t, "z": inputs["z"]}
    outputs, normal = asked(**known), common_normal(refs.contacts)
    static = static_references(
        refs.system, refs.contacts, refs.q0, normal, refs.ocp.period, shift=refs.shift,
        springs=following.law.rigid_springs,
    )  # fmt: skip
    ref = _with_tasks(refs.ocp, slots, command[own:], outputs["ref"])
    ref = with_static_references(refs.ocp, static, ref)
    given = refs.ocp.lengths is not None
    length = ref[slot_slices(refs.ocp.slots)[STEP]] if given else ca.MX(refs.ocp.period)
    measured = q, v, inputs.get(MEASURED, ca.MX(0, 1))
    first = following.predicted(plan, measured, age, t, length)
    return ca.Function(
        name,
        [*named.values()],
        [*first, ref, outputs["z_next"]],
        [*named],
        ["first_q", "first_v", "ref", "z_next"],
    )


def task_slots(system: System, tasks: Sequence[Task]) -> list[Slot]:
    """Return the slices of the references of tasks, in the order of the tasks."""
    return [slot for task in tasks for slot in task.slots(system)]


def _with_tasks(
    ocp: OptimalControlProblem, slots: Sequence[Slot], given: ca.MX, ref: ca.MX
) -> ca.MX:
    """Return p of all samples, one after the other, with the references of tasks."""
    if not slots:
        return ref
    places, N = slot_slices(ocp.slots), ocp.horizon
    P = ca.reshape(ref, ref.numel() // (N + 1), N + 1)
    ends = np.cumsum([0, *(slot.size for slot in slots)]).tolist()
    values = ca.vertsplit(ca.reshape(given, ends[-1], N + 1), ends)
    for slot, value in zip(slots, values, strict=True):
        P[places[slot.name], :] = value
    return ca.vec(P)


def planner_fun(
    name: str, references: ca.Function, follow: ca.Function, periods: tuple[float, float]
) -> ca.Function:
    """Return (q, v, command, [disturbance], [f_measured], u, age, t, z) → (ref, [mask], …).

    Behind them are outer_q, outer_v, outer_ref and z_next.
    """
    names = {key: "u" if key == "plan" else key for key in references.name_in()}
    inputs = {names[key]: ca.MX.sym(key, references.sparsity_in(key)) for key in names}
    slow, fast = periods
    since = inputs["t"] - slow * ca.floor(inputs["t"] / slow + 0.25 * fast / slow)
    planned = ca.Function.if_else("at_plans", references, _kept(references))
    found = planned.call([since < fast / 2, *(inputs[name] for name in names.values())])
    asked = dict(zip(references.name_out(), found, strict=True))
    known = inputs | {"plan": inputs["u"]}
    followed = follow(**{key: known[key] for key in follow.name_in()})
    outputs = {key: followed[key] for key in follow.name_out()}
    outputs |= {"outer_q": asked["first_q"], "outer_v": asked["first_v"], "outer_ref": asked["ref"]}
    outputs["z_next"] = asked["z_next"]
    return ca.Function(name, [*inputs.values()], [*outputs.values()], [*inputs], [*outputs])


def _kept(references: ca.Function) -> ca.Function:
    """Return what stands for the references between plans: nothing, and z as it is."""
    inputs = {key: ca.MX.sym(key, references.sparsity_in(key)) for key in references.name_in()}
    sizes = {key: references.sparsity_out(key) for key in references.name_out()}
    outputs = {key: ca.MX.zeros(size) for key, size in sizes.items()} | {"z_next": inputs["z"]}
    return ca.Function("kept", [*inputs.values()], [*outputs.values()], [*inputs], [*outputs])
