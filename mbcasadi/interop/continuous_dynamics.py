"""The motion under constraints as an ordinary differential equation.

    x = (q, v),   dx/dt = (N v, a(q, v, B u + f_0)),

with the acceleration of projected dynamics: no multipliers, regular at singular poses and with
redundant rows. Solutions stay on the manifold up to the error of the integrator; `baumgarte=`
stabilises this drift. Steps of `discrete_dynamics` end on it, and on unit quaternions.
"""

import importlib
from collections.abc import Sequence
from types import ModuleType

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import MissingExtraError, ProblemError
from mbcasadi.mpc.integrators.manifold_step import force_fun
from mbcasadi.mpc.integrators.step_options import DEFAULT_DYNAMICS, DynamicsOptions
from mbcasadi.shapes import described
from mbcasadi.system import System
from mbcasadi.system.parametric import at_model_values


@checked
@at_model_values
def continuous_dynamics(
    system: System, dynamics: DynamicsOptions = DEFAULT_DYNAMICS
) -> ca.Function:
    """Return (x, u, p) → (xdot) with `x = (q, v)`, `xdot = (N v, a)` and `p = ([t], [mask])`.

    Where coordinates hold quaternions, N v keeps their length. The actuators' force is
    `B u + f_0`, without clipping, whose derivative vanishes: bound the controls instead.

    Args:
        system: the mechanism.
        dynamics: how the acceleration is computed (`formulation`, `baumgarte`, ...).

    Raises:
        ProblemError: activation states, which x does not hold.
    """
    if system.na:
        raise ProblemError(
            f"'{system.name}' has {system.na} activation states, which x = (q, v) does not hold; "
            "expected actuators without them"
        )
    sizes = ({"t": 1} if system.timed else {}) | (
        {} if system.mask is None else {"mask": system.nc}
    )
    x, u = ca.MX.sym("x", system.nq + system.nv), ca.MX.sym("u", system.nu)
    p = ca.MX.sym("p", sum(sizes.values()))
    ends = np.cumsum([0, *sizes.values()]).tolist()
    signals = dict(zip(sizes, ca.vertsplit(p, ends), strict=True)) if sizes else {}
    q, v = x[: system.nq], x[system.nq :]
    f = force_fun(system)(q, v, u)
    a = dynamics.acceleration_fun(system)(q=q, v=v, f=f, **signals)["a"]
    xdot = ca.densify(ca.vertcat(system.velocity_map(q) @ v, a))
    return ca.Function("dynamics", [x, u, p], [xdot], ["x", "u", "p"], ["xdot"])


def require_methods(name: str, value: object, methods: Sequence[str], kind: str) -> None:
    """Raise `ProblemError` unless an object of another package has these methods."""
    if not all(callable(getattr(value, method, None)) for method in methods):
        raise ProblemError(f"{name} is {described(value)}; expected {kind}")


def require_members(name: str, value: object, members: Sequence[str], kind: str) -> None:
    """Raise `ProblemError` unless an object of another package has all of these members."""
    missing = [member for member in members if getattr(value, member, None) is None]
    if missing:
        raise ProblemError(
            f"{name} is {described(value)}, without {', '.join(missing)}; expected {kind}"
        )


def neighbour(module: str, how: str) -> ModuleType:
    """Import another package; `MissingExtraError` says how it is installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(f"{module} is not installed: {how}") from error
