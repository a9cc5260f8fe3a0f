"""What holds for every exported law: its C is the law, and nothing unbounded comes out."""

import inspect
from typing import get_type_hints

import numpy as np
import pytest

from bench.law_cases import CASES, inputs, system_of
from mbcasadi.codegen import export_c
from mbcasadi.control import laws, regulators
from mbcasadi.control.laws import Law

STATES = 1000
SAME = 1e-12
SOLVED_ALIKE = 1e-9  # the solver in Python and the one in C stop at the same accuracy, 1e-10
BAD = (np.nan, np.inf, -np.inf, 1e300)
FAST = ("-O0",)  # of the compiler, not of the law

ONE_OF_EACH = list({case.law: case for case in reversed(CASES)}.values())[::-1]


@pytest.fixture(scope="module", params=ONE_OF_EACH, ids=lambda case: case.name)
def law_and_program(request, tmp_path_factory):
    case = request.param
    law = case.build(system_of(case.model))
    folder = tmp_path_factory.mktemp("law") / case.law
    return case, law, export_c(law, folder).load(flags=FAST)


def builders():
    """Names of the public functions that return a law."""
    listed = ((laws, laws.__all__), (regulators, [*regulators.__all__, *regulators.NOT_STARRED]))
    public = {name: getattr(package, name) for package, names in listed for name in names}
    functions = {name: f for name, f in public.items() if inspect.isfunction(f)}
    return {n for n, f in functions.items() if get_type_hints(f).get("return") is Law}


def test_every_exported_law_is_among_the_cases():
    assert builders() - {"make_law"} == {case.law for case in CASES}


def states_of(law, count):
    values = inputs(law, count + count // 5, seed=1)
    values = {name: value[:, :count] for name, value in values.items()}
    assert values["q"].shape[1] == count
    z = np.tile(law.controller.z0[:, None], (1, count))
    return values | {"z": z + 0.1 * np.random.default_rng(2).standard_normal(z.shape)}


def differences(law, program, values, count):
    """Largest relative difference of each output, and the Function's own outputs."""
    ours, theirs = law.function.map(count)(**values), program.map(count)(**values)
    worst = {}
    for name in law.function.name_out():
        ours_row, theirs_row = ours[name].full(), theirs[name].full()
        same = ours_row == theirs_row  # infinities of a refused input too
        gap = np.where(
            same, 0.0, np.abs(np.where(same, 0, ours_row) - np.where(same, 0, theirs_row))
        )
        worst[name] = float((gap / (1 + np.abs(np.where(same, 0, ours_row)))).max(initial=0.0))
    return worst, {name: ours[name].full() for name in law.function.name_out()}


def test_the_c_equals_the_function_on_a_thousand_states(law_and_program):
    case, law, program = law_and_program
    errors, ours = differences(law, program, states_of(law, STATES), STATES)
    worst = max(errors.values())
    assert worst <= (SAME if case.exact else SOLVED_ALIKE), errors
    assert np.all(ours["status"] <= 2)
    assert np.ptp(ours["u"]) > 0


def test_bad_inputs_give_a_status_and_a_control_within_limits(law_and_program):
    _, law, program = law_and_program
    names = [name for name in law.function.name_in() if law.function.numel_in(name)]
    count = 2 * len(names) * len(BAD)
    values, rng = states_of(law, count), np.random.default_rng(3)
    remembered = np.zeros(count, dtype=bool)
    for k in range(count):
        name, bad = names[k // 2 % len(names)], BAD[k // (2 * len(names))]
        place = rng.integers(len(values[name]))
        values[name][place, k] = bad
        remembered[k] = name == "z" and place >= law.core.nz
    out = program.map(count)(**values)
    own = law.controller
    u, status = out["u"].full(), out["status"].full().ravel()
    assert np.all((u >= own.u_min[:, None]) & (u <= own.u_max[:, None]))
    # An active set, and what the safe output remembers, may hold anything: nothing trusts them.
    assert np.all(status[~remembered] == 3)
    assert np.all(np.isfinite(out["z_next"].full()))


def test_the_notes_name_the_law(law_and_program):
    case, law, _ = law_and_program
    own = law.controller
    assert own.name == law.function.name()
    assert own.notes["law"]
    assert own.notes["status"]
    for signal in (*own.inputs, *own.outputs):
        assert len(signal.components) == len(signal.units)
    builder = getattr(laws, case.law, None) or getattr(regulators, case.law)
    assert builder.__doc__.count("Args:") == 1
