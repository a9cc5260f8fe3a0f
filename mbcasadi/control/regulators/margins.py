"""Margins of any controller around an equilibrium, from its Function."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.margins.loop_margins import STABLE, Loop, Margins, loop_margins
from mbcasadi.control.regulators.feedback import require_continuous
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.lqr import require_equilibrium
from mbcasadi.control.regulators.operating_point import Array
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.description.status import Status
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column, require_whole

STEP = 1e-4
"""Step of a central difference, in the units of x, and relative to entries of the state."""

TICKS = 20000
"""Ticks within which a controller's state comes to rest at an equilibrium."""

RESTING = 1e-9
"""Relative change of a state in one tick that counts as rest."""

HOLDS = 1e-4
"""Acceleration that a controller causes at the equilibrium, relative to that of its control."""


@checked
def margins(
    linear: Linearization,
    controller: Controller | HasController,
    *,
    ref: ArrayLike | None = None,
    delay: int = 0,
) -> Margins:
    """Return how wrong gains, phase and delay may be before the loop is unstable.

    The controller is linearised with its state at the equilibrium, so integrals, filters, observers
    and waiting controls count; a QP with the active set that it has there.

    Args:
        linear: from `linearize` at an equilibrium, the plant.
        controller: of `mbcasadi.control`, or a `description.Controller`.
        ref: (nref,) reference at which it holds the equilibrium; zero by default, or what the
            controller's `reference_at` gives.
        delay: ticks from a measurement to the moment at which its control acts.

    Raises:
        ShapeError: ref has a wrong size.
        ProblemError: no equilibrium; the controller does not hold it, or the loop is unstable.
    """
    require_continuous(linear)
    require_equilibrium(linear)
    require_whole(0, delay=delay)
    given = controller if isinstance(controller, Controller) else controller.controller
    tick = _tick_at(linear, controller, given, ref)
    z = _resting_state(linear, given, tick)
    loop = Loop(
        A=linear.dfdx,
        B=linear.dfdu,
        controller=_linear_controller(linear.nx, linear.nu, tick, z),
        period=given.period,
        delay=delay,
        names=tuple(linear.system.actuator_names),
    )
    found = loop_margins(loop)
    if found is None:
        radius = loop.radius(np.ones(linear.nu, dtype=complex), np.zeros(linear.nu))
        raise ProblemError(
            f"the loop of '{given.name}' has an eigenvalue of size {radius:.6g} with a delay of "
            f"{delay} ticks; expected a stable loop, all below {STABLE}"
        )
    return found


Tick = Callable[[Array, Array], tuple[Array, Array, int]]


@runtime_checkable
class HoldsPoses(Protocol):
    """A controller whose reference can hold a pose."""

    def reference_at(self, q: ArrayLike) -> Array:
        """Return the reference that holds q."""


def _tick_at(
    linear: Linearization,
    controller: object,
    given: Controller,
    ref: ArrayLike | None,
) -> Tick:
    """Return (x, z) → (u, z_next, status) of a controller around the equilibrium."""
    function = given.function
    names, sizes = function.name_in(), dict(zip(function.name_in(), _sizes(function), strict=True))
    if {"f_c", "f_measured", "y"} & set(names):
        raise ProblemError(
            f"'{given.name}' reads {', '.join(names)}; expected a controller of q, v, act, ref, "
            "mask"
        )
    system, nu = linear.system, function.numel_out("u")
    if (sizes.get("q"), sizes.get("v"), nu) != (system.nq, system.nv, system.nu):
        raise ProblemError(
            f"'{given.name}' takes q[{sizes.get('q')}] and v[{sizes.get('v')}] and gives u[{nu}]; "
            f"expected those of '{system.name}': q[{system.nq}], v[{system.nv}], u[{system.nu}]"
        )
    inputs = {"mask": np.ones(sizes.get("mask", 0))}
    inputs["tuning"] = np.array([parameter.default for parameter in given.tuning])
    if ref is not None:
        inputs["ref"] = column("ref", ref, sizes.get("ref", 0))
    elif sizes.get("ref", 0) and isinstance(controller, HoldsPoses):
        inputs["ref"] = controller.reference_at(linear.q)
    else:
        inputs["ref"] = np.zeros(sizes.get("ref", 0))

    def tick(x: Array, z: Array) -> tuple[Array, Array, int]:
        q, v = linear.state(x)
        known = inputs | {"q": q, "v": v, "z": z, "act": linear.activation(x)}
        out = function(**{name: known[name] for name in names})
        u, z_next = (np.array(out[name]).ravel() for name in ("u", "z_next"))
        return u, z_next, int(out["status"])

    return tick


def _sizes(function: object) -> list[int]:
    return [function.numel_in(i) for i in range(function.n_in())]  # type: ignore[attr-defined]


def _resting_state(linear: Linearization, given: Controller, tick: Tick) -> Array:
    """Return the state of a controller that rests at the equilibrium.

    Raises:
        ProblemError: it finds none, or its control moves the mechanism.
    """
    z = np.array(given.z0, dtype=float)
    for _ in range(TICKS):
        u, z_next, status = tick(np.zeros(linear.nx), z)
        if status > Status.SUBOPTIMAL:
            raise ProblemError(
                f"'{given.name}' has status {status} at the equilibrium; expected one that holds it"
            )
        at_rest = np.all(np.abs(z_next - z) <= RESTING * (1 + np.abs(z)))
        z = z_next
        if at_rest:
            break
    moved = np.abs(linear.dfdu @ (u - linear.u)).max(initial=0.0)
    usual = np.abs(linear.dfdu).max(initial=0.0) * max(1.0, np.abs(linear.u).max(initial=0.0))
    if not at_rest or moved > HOLDS * usual:
        raise ProblemError(
            f"'{given.name}' does not hold the equilibrium: its control is {np.round(u, 6)}, that "
            f"of the equilibrium {np.round(linear.u, 6)}; expected a reference `ref` that holds it"
        )
    return z


def _linear_controller(
    nx: int, nu: int, tick: Tick, z_0: Array
) -> tuple[Array, Array, Array, Array]:
    """Return A_c, B_c, C_c, D_c of `u = -(C_c z + D_c x)`, of the entries that u depends on."""
    nz = z_0.size
    by = np.zeros((nu + nz, nx + nz))
    for k in range(nx + nz):
        step = STEP if k < nx else STEP * max(1.0, abs(z_0[k - nx]))
        ends = []
        for sign in (1, -1):
            x, z = np.zeros(nx), z_0.copy()
            (x if k < nx else z)[k if k < nx else k - nx] += sign * step
            u, z_next, _ = tick(x, z)
            ends.append(np.concatenate([u, z_next]))
        by[:, k] = (ends[0] - ends[1]) / (2 * step)
    used = _used(by[:nu, nx:], by[nu:, nx:])
    of_u, of_z = -by[:nu], by[nu:][used]
    return of_z[:, nx:][:, used], of_z[:, :nx], of_u[:, nx:][:, used], of_u[:, :nx]


def _used(of_u: Array, of_z: Array) -> list[int]:
    """Return the indices of the entries of a state that u depends on, now or later."""
    used = np.any(of_u != 0, axis=0)
    while True:
        more = used | np.any(of_z[used] != 0, axis=0)
        if np.array_equal(more, used):
            return [int(i) for i in np.flatnonzero(used)]
        used = more
