"""A step on the manifold and its Jacobian together, by the chain rule through its stages.

Value and derivatives of each stage come from one Function, called once for each stage, that
factors its matrices once. The chain from stage to stage is a Function of these derivatives alone,
which uses the structural zeros of its seeds. With w = (q, v, u, [t]):

    ∂a_i = slopes_i ∂(q_i, v_i, u, t_i),   ∂q_i = ∂(q ⊕ h Σ_j a_ij w_j),   and so on to q⁺, v⁺.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import casadi as ca

from mbcasadi.dynamics.slopes import scalar_if_small
from mbcasadi.dynamics.terms import Treatment
from mbcasadi.mpc.integrators.step_slopes import (
    acceleration_slopes_fun,
    chart_slopes_fun,
    landing_slopes_fun,
    newton_slopes_fun,
    plus_slopes_fun,
    tangent_slopes_fun,
)
from mbcasadi.mpc.integrators.tableaus import Tableau, weighted_sum
from mbcasadi.system import System

Expressions = Mapping[str, ca.MX]


@dataclass(frozen=True)
class StepRule:
    """Method and treatment of rows of a step.

    Attributes:
        tableau: of the Runge-Kutta method.
        newton: number of Newton steps back onto positions, 0 to stay off the manifold.
        motion, landing, back: treatment of rows along the motion, at an impact, and in the steps
            back onto the manifold.
    """

    tableau: Tableau
    newton: int
    motion: Treatment
    landing: Treatment
    back: Treatment


def step_slopes_fun(
    system: System, rule: StepRule, inputs: Expressions, h: ca.MX | float, substeps: int = 1
) -> ca.Function:
    """Return (q, v, u, [t], [mask], [h]) → (q_next, v_next, slopes) of equal steps in a row.

    `slopes` (nq + nv, ·) are those by (q, v, u, [t], [h]) side by side, exact for the map.

    Args:
        system: the mechanism.
        rule: method and treatment of rows.
        inputs: MX symbols by name.
        h: length of all steps together, s: a number, or the input of this name.
        substeps: number of steps.
    """
    single = _single(system, rule, inputs, h if "h" in inputs else h / substeps)
    if substeps == 1:
        return single
    seed = _seeds(inputs)
    arguments, slopes = dict(inputs), ca.vertcat(seed["q"], seed["v"])
    if "h" in inputs:
        arguments["h"] = inputs["h"] / substeps
    for k in range(substeps):
        out = single(**arguments)
        has_time_of_step = "t" in inputs and "h" in inputs
        clock = seed["t"] + (k / substeps) * seed["h"] if has_time_of_step else seed["t"]
        before = ca.vertcat(slopes, seed["u"], clock, seed["h"] / substeps)
        slopes = _product(out["slopes"], before)
        arguments |= {"q": out["q_next"], "v": out["v_next"]}
        arguments |= {"t": arguments["t"] + h / substeps} if "t" in inputs else {}
    outputs = {"q_next": arguments["q"], "v_next": arguments["v"], "slopes": slopes}
    return _fun("step_slopes", inputs, outputs)


def jacobian_fun(slopes: ca.Function, name: str) -> ca.Function:
    """Return the Jacobian of the Function `name` of a step, in the form of a `custom_jacobian`.

    Along a mask it is zero: rows are on or off.
    """
    s = {key: ca.MX.sym(key, slopes.size1_in(key)) for key in slopes.name_in()}
    out = {key: slopes.size1_out(key) for key in ("q_next", "v_next")}
    J, along = slopes(**s)["slopes"], [key for key in s if key != "mask"]
    columns = _split(J, [s[key].shape[0] for key in along], ca.horzsplit)
    blocks: dict[tuple[str, str], ca.MX] = {}
    for key, part in zip(along, columns, strict=True):
        rows = _split(part, list(out.values()), ca.vertsplit)
        blocks |= {(name_out, key): row for name_out, row in zip(out, rows, strict=True)}
    inputs = s | {f"out_{key}": ca.MX.sym(key, size) for key, size in out.items()}
    outputs = {
        f"jac_{key}_{x}": blocks.get((key, x), ca.MX(size, s[x].shape[0]))
        for key, size in out.items()
        for x in s
    }
    return _fun(f"jac_{name}", inputs, outputs)


def _single(system: System, rule: StepRule, s: Expressions, h: ca.MX | float) -> ca.Function:
    h = s.get("h", h)
    q, v, derivatives = _stages(system, rule, s, h)
    if system.nc and rule.newton:
        later = dict(s) | ({"t": s["t"] + h} if "t" in s else {})
        newton = _cached_function(newton_slopes_fun, system, rule.back)
        for k in range(rule.newton):
            out = _call_by_name(newton, later | {"q": q})
            q, derivatives[f"newton{k}"] = out["q_next"], out["slopes"]
        out = _call_by_name(
            _cached_function(tangent_slopes_fun, system, rule.back), later | {"q": q, "v": v}
        )
        v, derivatives["tangent"] = out["v_next"], out["slopes"]
    slopes = chain_fun(rule, s, derivatives, h)(**derivatives)["slopes"]
    return _fun("step_slopes", s, {"q_next": q, "v_next": v, "slopes": slopes})


def _stages(
    system: System, rule: StepRule, s: Expressions, h: ca.MX | float
) -> tuple[ca.MX, ca.MX, dict[str, ca.MX]]:
    """Return q and v after the Runge-Kutta step, and the derivatives of all Functions in it."""
    motion = _cached_function(acceleration_slopes_fun, system, rule.motion)
    plus, chart = plus_slopes_fun(system), chart_slopes_fun(system)
    has_chart = system.nq != system.nv
    derivatives: dict[str, ca.MX] = {"h": s["h"]} if "h" in s else {}
    q, v = s["q"], s["v"]
    if system.mask is not None:
        impact = _call_by_name(_cached_function(landing_slopes_fun, system, rule.landing), s)
        v, derivatives["landing"] = impact["a"], impact["slopes"]
    rates: list[ca.MX] = []
    accelerations: list[ca.MX] = []

    def position_after(weights: tuple[float, ...], name: str) -> ca.MX:
        weighted_rate = weighted_sum(weights, rates)
        derivatives.update({f"{name}.rate": weighted_rate} if "h" in s else {})
        if not has_chart:
            return q + h * weighted_rate
        out = plus(q=q, dv=h * weighted_rate)
        derivatives.update({f"{name}.q": out["by_q"], f"{name}.dv": out["by_dv"]})
        return out["q_next"]

    def velocity_after(weights: tuple[float, ...], name: str) -> ca.MX:
        rate = weighted_sum(weights, accelerations)
        derivatives.update({f"{name}.acceleration": rate} if "h" in s else {})
        return v + h * rate

    for i, (row, c) in enumerate(zip(rule.tableau.a, rule.tableau.c, strict=True)):
        # At the start the local coordinates are zero, where their rate is v for rotations too.
        q_i, v_i = (
            (position_after(row, f"{i}"), velocity_after(row, f"{i}")) if any(row) else (q, v)
        )
        if any(row) and has_chart:
            out = chart(q_base=q, q=q_i, v=v_i)
            derivatives |= {f"{i}.{key}": out[key] for key in ("by_base", "by_q", "by_v")}
            rates.append(out["xi_dot"])
        else:
            rates.append(v_i)
        at = dict(s) | {"q": q_i, "v": v_i} | ({"t": s["t"] + c * h} if "t" in s else {})
        out = _call_by_name(motion, at)
        derivatives[f"{i}.motion"] = out["slopes"]
        accelerations.append(out["a"])
    return position_after(rule.tableau.b, "end"), velocity_after(rule.tableau.b, "end"), derivatives


def chain_fun(
    rule: StepRule, inputs: Expressions, derivatives: Expressions, h: ca.MX | float
) -> ca.Function:
    """Return (parts) → (slopes): the chain rule along `_stages` and back onto the manifold.

    Args:
        rule: method and treatment of rows.
        inputs: symbols of the step by name.
        derivatives: derivatives of the Functions in it, by name.
        h: length of the step, s: a number, or the input of this name.
    """
    p = {key: ca.MX.sym(key, part.sparsity()) for key, part in derivatives.items()}
    h, seed = p.get("h", h), _seeds(inputs)
    q, v, u, t, dh = (seed[key] for key in ("q", "v", "u", "t", "h"))
    if "landing" in p:
        v = p["landing"] @ ca.vertcat(q, v, t)
    rates: list[ca.MX] = []
    accelerations: list[ca.MX] = []

    def position_after(weights: tuple[float, ...], name: str) -> ca.MX:
        step = h * weighted_sum(weights, rates)
        step += p[f"{name}.rate"] @ dh if "h" in p else 0
        return p[f"{name}.q"] @ q + p[f"{name}.dv"] @ step if f"{name}.q" in p else q + step

    def velocity_after(weights: tuple[float, ...], name: str) -> ca.MX:
        step = h * weighted_sum(weights, accelerations)
        return v + step + (p[f"{name}.acceleration"] @ dh if "h" in p else 0)

    for i, (row, c) in enumerate(zip(rule.tableau.a, rule.tableau.c, strict=True)):
        q_i, v_i = (
            (position_after(row, f"{i}"), velocity_after(row, f"{i}")) if any(row) else (q, v)
        )
        if f"{i}.by_v" in p:
            by = [p[f"{i}.{key}"] for key in ("by_base", "by_q", "by_v")]
            rates.append(by[0] @ q + by[1] @ q_i + by[2] @ v_i)
        else:
            rates.append(v_i)
            clock = t + c * dh if "h" in p and "t" in inputs else t
        accelerations.append(p[f"{i}.motion"] @ ca.vertcat(q_i, v_i, u, clock))
    q, v = position_after(rule.tableau.b, "end"), velocity_after(rule.tableau.b, "end")
    if "tangent" in p:
        later = t + dh if "h" in p and "t" in inputs else t
        for k in range(rule.newton):
            q = p[f"newton{k}"] @ ca.vertcat(q, later)
        v = p["tangent"] @ ca.vertcat(q, v, later)
    return scalar_if_small(_fun("chain", p, {"slopes": ca.densify(ca.vertcat(q, v))}))


def _seeds(inputs: Expressions) -> dict[str, ca.MX]:
    """Return the Jacobians of q, v, u, t, h by w = (q, v, u, [t], [h]), with their zeros."""
    sizes = {key: inputs[key].shape[0] if key in inputs else 0 for key in ("q", "v", "u", "t", "h")}
    eye = ca.MX(ca.DM.eye(sum(sizes.values())))
    return dict(zip(sizes, _split(eye, list(sizes.values()), ca.vertsplit), strict=True))


def _product(left: ca.MX, right: ca.MX) -> ca.MX:
    """Return `left @ right` by scalar code, with structural zeros, where that is short."""
    a, b = ca.MX.sym("a", left.sparsity()), ca.MX.sym("b", right.sparsity())
    product = ca.Function("product", [a, b], [ca.densify(a @ b)])
    return scalar_if_small(product)(left, right)


def _split(
    matrix: ca.MX, sizes: list[int], split: Callable[[ca.MX, list[int]], list[ca.MX]]
) -> list[ca.MX]:
    return list(split(matrix, [sum(sizes[:i]) for i in range(len(sizes) + 1)]))


def _cached_function(
    make: Callable[[System, Treatment], ca.Function], system: System, treatment: Treatment
) -> ca.Function:
    """Return the Function of `make`, cached for a system and its treatment of rows."""
    return system.cached_function(
        f"{make.__name__} {treatment.key}", lambda: make(system, treatment)
    )


def _call_by_name(function: ca.Function, inputs: Expressions) -> dict[str, ca.MX]:
    return dict(function(**{name: inputs[name] for name in function.name_in()}))


def _fun(name: str, inputs: Expressions, outputs: Expressions) -> ca.Function:
    return ca.Function(
        name, list(inputs.values()), list(outputs.values()), list(inputs), list(outputs)
    )
