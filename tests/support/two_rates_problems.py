"""Two rates made by hand: plans whose numbers are all the time of their measurement."""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from mbcasadi.description import Controller, Emergency, Signal
from mbcasadi.description.status import LAW_STATUS

PLAN, LEARNED = 200, 50  # numbers of a plan, and of what a tick learns
FAST, SLOW, EVERY = 0.002, 0.02, 10
LARGEST = 1e9
SOLVED, BAD_INPUT, FAILED, NO_PLAN = 0, 3, 4, 100
HELD = -7.0  # safe output

TIME, SPREAD, AGREES, COMMAND = range(4)  # entries of ref of the law, and of u


@dataclass(frozen=True)
class Parts:
    """What `export_two_rates` takes."""

    plan: Controller
    law: Controller
    references: ca.Function
    follow: ca.Function
    u0: np.ndarray
    z0: np.ndarray
    every: int
    delay: int


def controller(name, inputs, outputs, period, z0, has_emergency):
    """Return a controller of expressions by name."""
    memory, missed = ca.SX.sym("memory"), ca.SX.sym("missed")
    held = [ca.repmat(ca.SX(HELD), outputs["u"].numel(), 1), memory + missed]
    names = ["memory", "missed"], ["u", "memory_next"]
    emergency = Emergency(ca.Function("emergency", [memory, missed], held, *names), 0)
    signals = (
        tuple(
            Signal(k, tuple(f"{k}{i}" for i in range(x.numel())), ("",) * x.numel()) for k, x in d
        )
        for d in (inputs.items(), outputs.items())
    )
    law = ca.Function(name, [*inputs.values()], [*outputs.values()], [*inputs], [*outputs])
    nu = outputs["u"].numel()
    return Controller(
        name, law, *signals, u_min=np.full(nu, -LARGEST), u_max=np.full(nu, LARGEST),
        z0=np.array(z0), period=period, statuses=LAW_STATUS.texts, safe_statuses=LAW_STATUS.safe,
        emergency=emergency if has_emergency else None,
    )  # fmt: skip


def is_number(*values):
    return ca.mmin(ca.vertcat(*(ca.fabs(value) <= LARGEST for value in values))) > 0


def two_rates(delay: int = 1, name: str = "hand", *, emergency: bool = True) -> Parts:
    """Return plans (q, v, ref = (t, command, z, least, largest), z) → plan with t in its entries.

    The last four are least and largest entry of what the law has learned, the command and the
    number of the plan. The law learns the number of its ticks, in every entry of `learned`, and
    puts out what it follows: the plan's time, the spread of its entries, `t - age` less that time,
    its command. v_0 > 100 makes a plan
    fail, v_0 > 200 makes it infinite.
    """
    q, v, z = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("z", 1)
    ref = ca.SX.sym("ref", 5)
    good = is_number(q, v, ref, z)
    plan = ca.vertcat(ca.repmat(ref[0], PLAN - 4, 1), ref[3:], ref[1:3])
    plan[0] = ca.if_else(v[0] > 200, ca.inf, plan[0])
    fails = ca.logic_and(v[0] > 100, v[0] <= 200)
    status = ca.if_else(good, ca.if_else(fails, FAILED, SOLVED), BAD_INPUT)
    outputs = {
        "u": ca.if_else(good, ref[0], 0),
        "z_next": z + 1,
        "status": status,
        "flags": ca.SX(0),
        "plan": plan,
    }
    inputs = {"q": q, "v": v, "ref": ref, "z": z}
    slow = controller(f"{name}_plan", inputs, outputs, SLOW, [0.0], emergency)
    x, u = ca.SX.sym("z_next"), ca.SX.sym("x", 4)
    slow = replace(
        slow, prediction=ca.Function("prediction", [x], [ca.repmat(x, 1, 5), ca.repmat(x, 1, 4)])
    )

    t, command = ca.SX.sym("t"), ca.SX.sym("command")
    learned = ca.SX.sym("learned", LEARNED)
    z_next = ca.if_else(is_number(t, command), z + 1, z)
    references = ca.Function(
        "references", [q, v, command, learned, t, z],
        [ca.vertcat(t, command, z, ca.mmin(learned), ca.mmax(learned)), z_next],
        ["q", "v", "command", "learned", "t", "z"], ["ref", "z_next"],
    )  # fmt: skip

    followed, age = ca.SX.sym("plan", PLAN), ca.SX.sym("age")
    same = followed[: PLAN - 4]
    spread = ca.mmax(same) - ca.mmin(same) + followed[-3] - followed[-4]
    at = ca.vertcat(followed[0], spread, t - age - followed[0])
    at, on = ca.vertcat(at, followed[-2]), ca.SX(ca.DM([1, 0]))
    follow = ca.Function(
        "follow", [followed, age, t], [at, on], ["plan", "age", "t"], ["ref", "mask"]
    )

    r, mask = ca.SX.sym("ref", 4), ca.SX.sym("mask", 2)
    good = is_number(q, v, r)
    u = ca.if_else(good, r, HELD)
    outputs = {"u": u, "z_next": z + 1, "status": ca.if_else(good, 0, BAD_INPUT)}
    outputs |= {"flags": mask[0] + 2 * mask[1], "residual": z}
    outputs["learned"] = ca.repmat(z + 1, LEARNED, 1)
    inputs = {"q": q, "v": v, "ref": r, "mask": mask, "z": z}
    fast = controller(f"{name}_law", inputs, outputs, FAST, [0.0], emergency)
    u0 = np.full(PLAN, 0.0)
    return Parts(slow, fast, references, follow, u0, np.zeros(1), EVERY, delay)
