"""The motion does not depend on the units of the coordinates, in any formulation.

The coordinates are `q = D q'`, with D diagonal: millimetres and degrees, say, in place of metres
and radians. Then `M' = D M D`, `h' = D h`, `A' = A D`, and `a = D a'`, `f_c' = D f_c` and lam.
"""

import casadi as ca
import numpy as np
import pytest
from support.admissible_states import admissible_states, call, column, drifted_states
from support.constrained_mechanisms import mechanism
from support.formulation_variants import labelled, variants
from support.motion_references import acceleration_scale, force_scale, reference_motion, worst

import mbcasadi as mb
from mbcasadi.dynamics import Treatment

TOL = 1e-10  # relative, in the original units
ROUNDING = 2e-15  # of one operation, with a margin of ten
STATES = 100


def in_other_units(system: mb.System, D: np.ndarray) -> mb.System:
    """Return a system of equations with the coordinates `D⁻¹ q`."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    t = ca.SX.sym("t") if system.timed else None
    now = {"q": D * q, "v": D * v} | ({} if t is None else {"t": t})

    def at(member: ca.Function) -> ca.SX:
        return member(**{key: now[key] for key in member.name_in()})[member.name_out(0)]

    M = ca.diag(D) @ at(system.mass_matrix) @ ca.diag(D)
    h = D * (at(system.bias_force) - at(system.passive_force))
    rows = {"phi": at(system.constraint)} if system.nc else {}
    return mb.from_equations(q, v, M=M, h=h, **rows, t=t)


CASES = {
    "elastic_slider_crank": [np.pi / 180, np.pi / 180, 1e-3, 1e-3, 1e-3],  # degrees, millimetres
    "cooperating_arms": [0.01, 1.0, 100.0, 1.0, 0.1],
    "moving_pendulum": [0.0254, 0.0254, 0.3048, 0.3048],  # inches, feet
}


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "in a metric"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.every(3)
def test_a_change_of_units_changes_no_motion(name, weighted):
    """Without a metric the condition of `D M D` counts: 1e8 for unequal D in the second case.

    gamma and virtual_mass have the unit of M: as numbers they belong to one system of units.
    """
    it, D = mechanism(name), np.array(CASES[name])
    tol = TOL if weighted else max(TOL, ROUNDING * (D.max() / D.min()) ** 2)
    other = in_other_units(it.system, D)
    metric = np.diag(np.arange(1.0, it.system.nv + 1))
    own, others = (metric, D[:, None] * metric * D) if weighted else (None, None)
    at = {
        key: np.hstack([values[:, :STATES], drifted_states(it)[key][:, :STATES]])
        for key, values in admissible_states(it).items()
    }
    expected = reference_motion(it, at)
    scaled = at | {"q": at["q"] / D[:, None], "v": at["v"] / D[:, None]}
    scaled["f"] = D[:, None] * at["f"]
    for label in variants(it):
        formulation, options = labelled()[label]
        if not weighted and {"gamma", "virtual_mass"} & set(options):
            continue
        # drifted states: every row counts, whatever the gap
        options = options | {"treatment": Treatment(row_scale=1.0)}
        here = mb.forward_dynamics(it.system, formulation, metric=own, **options, derivatives=False)
        there = mb.forward_dynamics(other, formulation, metric=others, **options, derivatives=False)
        for found, unit in ((call(here, at), np.ones_like(D)), (call(there, scaled), D)):
            off = column(found, "a") * unit - expected.a
            assert worst(off, acceleration_scale(expected)) < tol, label
            off = column(found, "f_c") / unit - expected.f_c
            assert worst(off, force_scale(expected)) < tol, label


def test_which_rows_repeat_is_decided_alike_in_all_units():
    """A row of 1e-6 per metre counts beside one of 1, in metres and in units of 10 µm."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    system = mb.from_equations(
        q, v, M=np.eye(2), h=np.zeros(2), phi=ca.vertcat(q[0] - q[1], 1e-6 * (q[0] ** 2 - 1))
    )
    D = np.array([1e-5, 1e-5])
    other = in_other_units(system, D)
    state = {"q": np.array([1.0, 1.0]), "v": np.zeros(2), "f": np.array([1.0, 0.0])}
    scaled = {"q": state["q"] / D, "v": state["v"], "f": D * state["f"]}
    here = mb.forward_dynamics(system, derivatives=False)(**state)["a"].full().ravel()
    there = D * mb.forward_dynamics(other, derivatives=False)(**scaled)["a"].full().ravel()
    weighted = (
        mb.forward_dynamics(other, metric=np.diag(D**2), derivatives=False)(**scaled)["a"]
        .full()
        .ravel()
    )
    for a in (here, there, D * weighted):
        np.testing.assert_allclose(a, [0, 0], atol=1e-9)
    lost = (
        mb.forward_dynamics(other, derivatives=False, treatment=Treatment(row_scale=1.0))(**scaled)[
            "a"
        ]
        .full()
        .ravel()
    )
    np.testing.assert_allclose(D * lost, [0.5, 0.5])  # with a scale in the unit of the row
