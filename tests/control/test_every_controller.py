"""What holds for every controller: its C is the Function, and nothing unbounded comes out.

The registry is `support/controller_cases.py`.
"""

import inspect
from typing import get_type_hints

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support.controller_cases import BAD, CASES, INVERSE_DYNAMICS
from support.controller_contract import assert_program_is_the_function, column_of
from support.refusals import refused

from bench import law_cases
from mbcasadi import errors as err
from mbcasadi import estimation
from mbcasadi.codegen import export_c
from mbcasadi.control import InverseDynamicsQP, laws, regulators
from mbcasadi.control.laws import Law

STATES = {True: 60, False: 300}  # of a QP, and without
WRONG = (np.nan, np.inf, -np.inf, 1e300)
OF_THEIR_OWN = {"ctrl_limits", "force_limits", "fallback_law", "internal_forces", "name"}
NUMBERS = {"torque_weight", "internal_force_weight", "rank_tol", "tolerance", "servo_timestep"}


LONG = {
    "cones, soft joints, tunable",
    "dependent_tracking",
    "feedback_from_ss",
    "feet with ranges",
    "figures",
    "force",
    "gravity_compensated_pd",
    "hybrid",
    "impedance_control",
    "least_norm",
    "levels",
    "limits of positions",
    "lti_inverse_dynamics",
    "passive",
    "passive_joint_control",
    "pole_placement",
    "projected",
    "qr_inverse_dynamics",
    "quasi_velocity_force",
    "ramp, forces, rates",
    "shared and soft feet",
}
"""Their options have tests with C of their own, their law is there once more, or its C has the
parts of another one."""


def long_where_listed(name: str):
    """Return a case as a parameter, marked where it is long."""
    return pytest.param(name, marks=[pytest.mark.long] * (name in LONG))


@pytest.fixture(scope="module", params=[long_where_listed(name) for name in CASES])
def made(request, tmp_path_factory):
    """Return a case, its controller, and its C."""
    case = CASES[request.param]
    law = case.make()
    return case, law, export_c(law, tmp_path_factory.mktemp("law") / law.function.name()).load()


def test_every_public_law_is_among_the_cases():
    listed = [(laws, laws.__all__), (estimation, estimation.__all__)]
    listed += [(regulators, [*regulators.__all__, *regulators.NOT_STARRED])]
    public = {name: getattr(package, name) for package, names in listed for name in names}
    functions = {name: f for name, f in public.items() if inspect.isfunction(f)}
    builders = {n for n, f in functions.items() if get_type_hints(f).get("return") is Law}
    assert builders - {"make_law"} == {case.law for case in law_cases.CASES} <= set(CASES)
    assert all(public[name].__doc__.count("Args:") == 1 for name in builders)


def test_every_option_of_inverse_dynamics_is_among_the_cases():
    options = {name for case in INVERSE_DYNAMICS.values() for name in case.options}
    known = set(inspect.signature(InverseDynamicsQP).parameters) - {"system", "tasks", "contacts"}
    assert known - options == OF_THEIR_OWN | NUMBERS


def states_of(case, law, seed=1):
    return case.states(law, STATES[case in INVERSE_DYNAMICS.values()], seed)


def test_the_c_equals_the_function(made):
    case, law, program = made
    ours = assert_program_is_the_function(law, program, states_of(case, law), case)
    assert set(case.seen) <= set(ours["status"].ravel()) <= {*range(3)}
    shown = np.bitwise_or.reduce(ours["flags"].astype(int).ravel())
    assert case.flags & ~shown == 0
    assert np.ptp(ours["u"]) > 0


def test_bad_inputs_give_a_status_and_a_control_within_limits(made):
    """An active set, and what the safe output remembers, may hold anything: nothing trusts them."""
    case, law, program = made
    names = [name for name in law.function.name_in() if law.function.numel_in(name)]
    count, own_state = 2 * len(names) * len(WRONG), getattr(getattr(law, "core", None), "nz", 0)
    values, rng = case.states(law, count, 1), np.random.default_rng(3)
    trusted = np.ones(count, dtype=bool)
    for k in range(count):
        name, bad = names[k // 2 % len(names)], WRONG[k // (2 * len(names))]
        place = rng.integers(len(values[name]))
        values[name][place, k] = bad
        trusted[k] = name != "z" or place < own_state
    out = program.map(count)(**values)
    bounded(law, out["u"].full())
    assert np.all(out["status"].full().ravel()[trusted] == BAD)
    assert np.all(np.isfinite(out["z_next"].full()))
    for name in {"relaxed", "slack"} & set(out):
        assert not np.any(out[name].full()[:, trusted])


def bounded(law, u):
    low, high = law.controller.u_min[:, None], law.controller.u_max[:, None]
    assert np.all((u >= low) & (u <= high))


def test_a_bad_measurement_gives_the_command_of_the_tick_before_and_then_holds(made):
    """As soon as one tick was solved; in the C over some ticks as in the Function."""
    case, law, program = made
    values = column_of(case.states(law, 3, 1), 0) | {"z": law.z0}
    last = program(**values)
    assert float(last["status"]) <= 1
    expected = 0 * last["u"] if case.options.get("fallback") == "zero" else last["u"]
    for name in ("q", "v"):
        broken, z = values | {name: np.full_like(values[name], np.nan)}, last["z_next"]
        for tick in range(5):
            out, own = (f(**broken | {"z": z}) for f in (program, law.function))
            assert float(out["status"]) == float(own["status"]) == BAD
            np.testing.assert_allclose(out["u"].full(), own["u"].full(), rtol=1e-9, atol=1e-9)
            assert tick > 0 or np.array_equal(out["u"].full(), expected.full())
            z = out["z_next"]


def test_states_far_from_any_give_bounded_controls(made):
    _, law, program = made
    rng, n = np.random.default_rng(13), 200
    sizes = {name: law.function.numel_in(name) for name in law.function.name_in()}
    out = program.map(n)(**{k: 30 * rng.standard_normal((size, n)) for k, size in sizes.items()})
    bounded(law, out["u"].full())
    assert set(out["status"].full().ravel()) <= {0.0, 1.0, 2.0, 3.0, 4.0}  # 3: the loop is open


def test_every_signal_has_names_and_units(made):
    _, law, _ = made
    own, function = law.controller, law.function
    assert own.name == function.name()
    assert all(own.notes[name] for name in ("law", "status") if isinstance(law, Law))
    assert [signal.name for signal in own.inputs] == function.name_in()
    assert [signal.name for signal in own.outputs] == function.name_out()
    sizes = [(own.inputs, function.numel_in), (own.outputs, function.numel_out)]
    sizes += [(own.monitors, own.monitor.numel_out)] if own.monitor is not None else []
    for signals, size in sizes:
        for i, signal in enumerate(signals):
            assert len(signal.components) == len(signal.units) == size(i)
            assert len(set(signal.components)) == len(signal.components)


def test_members_and_solve_are_those_of_the_function(made):
    case, law, _ = made
    own, values = law.controller, column_of(case.states(law, 1, 2), 0)
    assert law.period == own.period
    assert_array_equal(law.z0, own.z0)
    places = law.reference_slices
    assert sum(place.stop - place.start for place in places.values()) == law.nref
    assert law.nref == law.function.numel_in("ref")
    out = law.function(**values)
    given = {name: value for name, value in values.items() if name not in ("q", "v")}
    if "tuning" in given:
        names = [entry.name for entry in law.tuning]
        given["tuning"] = dict(zip(names, given["tuning"], strict=True))
    solution = law.solve(values["q"], values["v"], **given)
    assert_array_equal(solution.u, np.array(out["u"]).ravel())
    assert_array_equal(solution.z_next, np.array(out["z_next"]).ravel())
    assert solution.status == int(out["status"])
    assert solution.status_text in own.statuses[solution.status]
    for name, place in list(places.items())[:1]:
        value = np.linspace(1.0, 2.0, place.stop - place.start)
        filled, keyword = law.reference({name: value}), name.replace(".", "_")
        assert_array_equal(filled, law.reference(**{keyword: value}))
        assert_array_equal(filled[place], value)
        rest = np.arange(place.start, place.stop)
        assert_array_equal(np.delete(filled, rest), np.delete(law.reference(), rest))
        refused(err.ShapeError, "expected", lambda: law.reference({name: np.zeros(value.size + 7)}))  # noqa: B023
        refused(err.UnknownNameError, "no_such", lambda: law.reference(no_such=1.0))
