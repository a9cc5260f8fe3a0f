"""Assembly, motion and dynamics of one linkage in several systems of units."""

import casadi as ca
import numpy as np
import pytest
from support.unit_systems import (
    KINDS,
    OTHERS,
    SI,
    assert_same,
    closed_state,
    forces_of,
    linkage,
    rates_of,
    slider_crank,
    state_in,
)

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi.dynamics import branch_motion
from mbcasadi.dynamics.formulations import FORMULATIONS
from mbcasadi.simulation import InitialConditions, Switch

AGREE = 1e-9  # relative; rows closed to rounding errors
OPEN_POSE = np.array([0.12, 0.7, -1.3, 0.1])  # SI
ANGLES = ("rad", "rad", "m")  # of the slider-crank


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_assembled_poses_agree_in_all_units(units):
    def found(u):
        pose = mb.assemble(linkage(u), u.of(KINDS) * OPEN_POSE)
        given = mb.assemble(slider_crank(u), u.of(ANGLES) * [0.7, -0.3, 0.9])
        return {"linkage": pose / u.of(KINDS), "equations": given / u.of(ANGLES)}

    expected, other = found(SI), found(units)
    assert np.abs(expected["linkage"] - OPEN_POSE).max() > 0.01
    for key, value in expected.items():
        assert_same(other[key], value, 1e-8, key)  # a step of 1e-9 ends the search


@pytest.mark.parametrize("units", OTHERS, ids=str)
@pytest.mark.every(2)
def test_what_cannot_be_assembled_is_refused_in_all_units(units):
    for u in (SI, units):
        far = linkage(u, copy=True)  # cart and slider move alike: the rod is too short
        with pytest.raises(err.AssemblyError, match="cannot be assembled"):
            mb.assemble(_apart(far, u), u.of(KINDS) * OPEN_POSE)


def _apart(system, u):
    """Return the linkage with cart and slider further apart than crank and rod are long."""
    q, v = ca.SX.sym("q", 4), ca.SX.sym("v", 4)
    return system.with_rows(q, v, phi=q[3] - 2.0 * u.m - q[0])


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_motions_agree_in_all_units(units):
    """From a start that is neither closed nor admissible."""

    def found(u):
        system = linkage(u)
        v0 = rates_of(u) * [0.5, -1.0, 0.4, 0.2]
        pull = forces_of(u) * [1.0, 0.2, 0.0, 0.5]
        q0 = u.of(KINDS) * OPEN_POSE
        run = mb.simulate(system, q0, v0, 0.3 * u.s, force=lambda *_: pull)
        return {
            "q": run.q[[0, -1]] / u.of(KINDS),
            "v": run.v[[0, -1]] / rates_of(u),
            "a": run.a[[0, -1]] / rates_of(u) * u.s,
            "f_c": run.f_c[[0, -1]] / forces_of(u),
            "energy": run.energy[[0, -1]] / u.torque,
        }, (len(run.t), run.steps, set(run.rank.tolist()), run.stopped)

    (expected, counts), (other, same) = found(SI), found(units)
    assert same == counts  # the same steps
    for key, value in expected.items():
        assert_same(other[key], value, 1e-8, key)


@pytest.mark.parametrize("units", OTHERS, ids=str)
@pytest.mark.parametrize("gap", [1e-7, 1e-5])
@pytest.mark.every(2)
def test_a_loop_that_closes_a_little_open_is_judged_alike_in_all_units(units, gap):
    """The gap is in metres; the tolerance, 1e-6 of the model's length, lies between."""

    def verdict(u):
        system = linkage(u, switchable=True)
        q, v = state_in(u)
        opened = q + u.of(KINDS) * [0, 0, 0, gap]
        off = InitialConditions(mask=np.zeros(system.nc))
        rows = np.repeat([1.0, 1.0, 0.0], [3, 3, system.nc - 6])
        close = Switch("close", 1e-9 * u.s, rows)
        try:
            mb.simulate(system, opened, v, 1e-3 * u.s, initial=off, events=[close])
        except err.SimulationError as error:
            return "would close row" in str(error)
        return False

    assert verdict(units) == verdict(SI) == (gap > 1e-6)


@pytest.mark.parametrize("units", OTHERS, ids=str)
@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.every(3)
def test_dynamics_agree_in_all_units(units, formulation):
    def found(u):
        system = linkage(u)
        q, v = state_in(u)
        f = forces_of(u) * [1.0, -0.3, 0.2, 0.8]
        out = mb.forward_dynamics(system, formulation, derivatives=False)(q=q, v=v, f=f)
        return out["a"].full().ravel() / rates_of(u) * u.s, out["f_c"].full().ravel() / forces_of(u)

    for other, value in zip(found(units), found(SI), strict=True):
        assert np.abs(value).max() > 0.1
        assert_same(other, value, AGREE)


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_redundancy_and_branches_are_judged_alike_in_all_units(units):
    straight = closed_state(np.array([0.05, 0.0, 0.0, 0.0]))[0]  # crank and rod in line

    def found(u):
        system, f = linkage(u), forces_of(u) * [1.0, -0.3, 0.2, 0.8]
        verdicts, values = [], []
        for q, v in (state_in(u), (u.of(KINDS) * straight, rates_of(u) * [0.3, 0, 0, 0.3])):
            report = mb.redundancy(system, q, v)
            verdicts.append((report.rank, report.vanishing, report.repeated, report.consistent))
            a, _, _, status = branch_motion(system)(q, v, f)
            verdicts.append(float(status))
            values.append(a.full().ravel() / rates_of(u) * u.s)
        copied = mb.redundancy(linkage(u, copy=True), *state_in(u))
        return [*verdicts, copied.rank, copied.consistent], values

    (expected, values), (other, same) = found(SI), found(units)
    assert other == expected
    for a, value in zip(same, values, strict=True):
        assert_same(a, value, AGREE)
