"""One controller of each kind of MPC with inputs that it can solve: the cases of one contract."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mbcasadi import mpc
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.control.regulators import encoders, lqr, lqr_gain
from mbcasadi.description.status import Flag, Status
from mbcasadi.estimation import kalman, lqg
from support.linear_mpc_cases import (
    MODEL,
    at_rest,
    controller_of,
    held,
    mechanism_mpc,
    mechanism_options,
    options_of,
)
from support.mpc_mechanisms import balance, cart_pole, coupled_carts, sliding_mass
from support.problems import problem

SOLVED, INFEASIBLE = Status.SOLVED, Status.INFEASIBLE
Inputs = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """A controller and what the contract varies.

    Attributes:
        make: () → an object with a `controller`.
        draw: (it, random numbers) → inputs that are valid, by name, without z.
        seen: statuses that valid inputs give, among others.
        flags: flags that they give, among others.
        remembers: z holds more than an active set: where it is lost, that is bad input.
        in_c: there is C of its solver; None: other cases have the same C.
        accuracy: of solvers in Python and C, over the largest control.
    """

    make: Callable[[], Any]
    draw: Callable[[Any, np.random.Generator], Inputs]
    seen: frozenset[int] = frozenset({SOLVED})
    flags: frozenset[int] = frozenset({0})
    remembers: bool = False
    in_c: bool | None = True
    accuracy: float = 1e-9


def around(nominal=lambda _: {}, **spread):
    """Return a draw about nominal inputs, else zeros, with these standard deviations."""

    def draw(made, rng):
        signals = [signal for signal in made.controller.inputs if signal.name != "z"]
        values = {s.name: np.zeros(len(s.components)) for s in signals} | nominal(made)
        noise = {k: size * rng.standard_normal(values[k].size) for k, size in spread.items()}
        return values | {name: values[name] + part for name, part in noise.items()}

    return draw


def plain(case, seen=(), flags=(), remembers=False, in_c=True, **options):
    """Return a case of the oscillator."""
    draw = around(x0=np.array([2.0, 0.9]), ref=0.5)
    sets = frozenset({SOLVED, *seen}), frozenset({0, *flags})
    return Case(partial(controller_of, case, **options), draw, *sets, remembers, in_c)


def estimating(**options):
    """Return offset-free MPC of the oscillator."""
    given = options_of(u_bounds=[[-1.0, 1.0]], du_bounds=[[-0.3, 0.3]])
    options = {"noise": mpc.Noise(disturbance=10.0), "gate": None} | options
    return mpc.offset_free_lti(MODEL, given, [[1.0, 0.0]], **options)


def sometimes_wild(_, rng):
    """Return measurements of which a third are nowhere near the others."""
    return {"y": 10.0 ** rng.choice([-3, -3, 0]) * rng.standard_normal(2), "ref": np.zeros(3)}


def idle(make, *rows, **options):
    """Return MPC of a four-bar of whose coordinates some have no cost."""
    return make(
        at_rest("four_bar"), mechanism_options(at_rest("four_bar"), 4, **IDLE | options), *rows
    )


IDLE = {"Q": (1.0, 0.0)}


def of_four_bar(made):
    linear = at_rest("four_bar")
    values = {"q": np.array(linear.q), "mask": np.ones(1)}
    if isinstance(made, mpc.LinearMPC):
        values["ref"] = held(made, linear)
    names = {signal.name for signal in made.controller.inputs}
    return {name: value for name, value in values.items() if name in names}


def mechanism(make, *, spread=1e-3, flags=(), **more):
    """Return a case of the four-bar."""
    draw = around(of_four_bar, q=spread, v=spread)
    return Case(make, draw, flags=frozenset({0, *flags}), **more)


def tight_pin():
    """Return MPC of a four-bar whose pin may not be pulled too hard."""
    linear = at_rest("four_bar")
    pin = mpc.force_output(linear, "pin", np.eye(3)[:1], -0.02, 0.02, linear_penalty=10.0)
    return mechanism_mpc(linear, 10, 1e-3, outputs=[pin], delay=1)


def rows_of(system):
    """Return a hard row, a soft one and one at the end."""
    s = mpc.stage_symbols(system)
    return s, [
        mpc.Bounded(s.q[0] + 0.1 * s.v[0], -0.5, 0.5, name="rail"),
        mpc.Bounded(s.u * s.v[0], upper=0.05, linear_penalty=0.02, name="power"),
        mpc.Bounded(s.v[1], -0.5, 0.5, quadratic_penalty=1.0, at_end=True),
    ]


def with_rows():
    """Return an iteration with rows, rates and delay."""
    system = cart_pole(upright=True)
    s, rows = rows_of(system)
    bounds = {"S": 0.01, "du_bounds": [[-6, 6]]}
    return mpc.real_time_iteration(balance(system=system, symbols=s, path=rows, **bounds), delay=1)


def landing():
    """Return an iteration of carts that stand together when a schedule couples them."""
    system = coupled_carts()
    s = mpc.stage_symbols(system, lands=1)
    met = mpc.Bounded(s.parameters["lands"] * (s.q[0] - s.q[1]), 0, 0)
    given = {"Q": 0.1, "R": 0.1, "Q_end": [1, 1, 5, 5], "path": [met], "symbols": s}
    return mpc.real_time_iteration(problem(system, 8, 0.1, **given), shift=False)


def schedule(made):
    sample = np.arange(made.ocp.horizon + 1)[:, None]
    return {"ref": made.ocp.parameters(mask=sample >= 4, lands=sample == 4).ravel()}


def nominal(made):
    return {"ref": made.ocp.parameters().ravel()}


BODY = mpc.SingleRigidBody(12.0, np.diag([0.07, 0.26, 0.24]), friction=0.5, f_min=5.0, f_max=90.0)
FEET = np.array([[0.2, 0.13, 0], [0.2, -0.13, 0], [-0.2, 0.13, 0], [-0.2, -0.13, 0]])
TROT = np.array([[1.0, 0, 0, 1], [0, 1, 1, 0]])
BODY_WEIGHTS = np.array([5.0, 5, 10, 10, 10, 50, 0.1, 0.1, 0.1, 0.5, 0.5, 0.5])


def rigid_body(horizon=3, rho=1e-4, period=0.03, **options):
    """Return MPC of a trotting body."""
    return mpc.single_rigid_body_mpc(BODY, horizon, BODY_WEIGHTS, rho, period=period, **options)


def trotting(made, rng):
    """Return x0, feet, ref and mask of a body that trots and was pushed."""
    horizon = made.function.numel_in("mask") // 4
    ref, x0 = np.zeros((horizon, 12)), 0.1 * rng.standard_normal(12)
    x0[2] = ref[:, 2] = 3 * rng.standard_normal()
    x0[9:] *= 5
    x0[5] += 0.3
    ref[:, 5] = 0.3
    ref[:, 9] = 0.5 * rng.standard_normal()
    c, s = np.cos(x0[2]), np.sin(x0[2])
    feet = FEET @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) + 0.02 * rng.standard_normal((4, 3))
    phase = (np.arange(horizon) + rng.integers(8)) // 4 % 2
    mask = np.ones((horizon, 4)) if rng.random() < 0.3 else TROT[phase]
    return {"x0": x0, "feet": feet.ravel(), "ref": ref.ravel(), "mask": mask.ravel()}


def unread():
    """Return an iteration of a mass whose speed has no cost."""
    cost = mpc.Cost(Q=[1.0, 0.0], R=1.0)
    return mpc.real_time_iteration(mpc.optimal_control_problem(sliding_mass(), 3, 0.1, [cost]))


CASES = {
    "bounded": plain("bounded", {INFEASIBLE}, in_c=None),
    "rates": plain("rates", remembers=True),
    "delay": plain("delay", remembers=True),
    "preview": plain("preview", in_c=None),
    "soft": plain("soft", flags={Flag.RELAXED}),
    "ended": plain("ended", {INFEASIBLE}, in_c=None),
    "sparse": plain("bounded", {INFEASIBLE}, form="sparse", in_c=False),
    "offset-free": Case(estimating, around(y=np.array([2.0, 0.9]), ref=0.5), remembers=True),
    "gated": Case(
        partial(estimating, noise=mpc.Noise([1e-6, 1e-4], 1e-6, 1e-6), gate=mpc.Gate()),
        sometimes_wild,
        flags=frozenset({0, Flag.GATED}),
        remembers=True,
    ),
    "mechanism": mechanism(partial(idle, mpc.linear_mpc), in_c=None),
    "mechanism, sparse": mechanism(partial(idle, mpc.linear_mpc, form="sparse"), in_c=False),
    "mechanism, multipliers": mechanism(
        partial(idle, mpc.linear_mpc, form="multipliers"), in_c=False
    ),
    "offset-free mechanism": mechanism(
        partial(idle, mpc.offset_free_mpc, np.eye(6)[:1]), remembers=True, in_c=None
    ),
    "force rows": mechanism(tight_pin, flags={Flag.RELAXED}, remembers=True, spread=2e-2),
    "iteration": Case(unread, around(nominal, q=1.0, v=1.0), in_c=None),
    "iteration, late": Case(
        lambda: mpc.real_time_iteration(balance(), delay=2), around(nominal, q=0.2, v=0.2)
    ),
    "iteration with rows": Case(
        with_rows, around(nominal, q=0.1, v=0.3), flags=frozenset({0, Flag.RELAXED}), accuracy=1e-8
    ),
    "iteration with a schedule": Case(landing, around(schedule, q=0.3, v=0.3)),
    "rigid body": Case(rigid_body, trotting, accuracy=1e-7),
}


def filtered():
    """Return a Kalman filter and a regulator of a four-bar."""
    linear = at_rest("four_bar")
    W = np.repeat([0.0, 1.0], linear.system.nv)
    estimator = kalman(linear, encoders(linear.system, ["crank"]), W, 1e-6, period=0.01)
    return lqg(estimator, lqr_gain(linear, np.ones(6), 1.0, period=0.01).K)


OTHERS = {
    "regulator": mechanism(lambda: lqr(at_rest("four_bar"), np.repeat([1.0, 0.0], 3), 1.0)),
    "filter and regulator": mechanism(filtered),
    "inverse dynamics": mechanism(
        lambda: InverseDynamicsQP(
            at_rest("four_bar").system, [PostureTask(kp=0.0, kd=0.0, weight=[1.0, 0.0, 0.0])]
        )
    ),
}
"""Controllers of other packages, for which bad input is the same."""
