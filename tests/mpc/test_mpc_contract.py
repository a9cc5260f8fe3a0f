"""What holds for every MPC: its C is the law, bad input is bad, no solver is trusted."""

import numpy as np
import pytest
from support.mpc_cases import CASES, OTHERS

import mbcasadi as mb
from mbcasadi.description.status import OUTPUTS, Status
from mbcasadi.errors import ExportError

TICKS = 40
BAD = (np.nan, -np.inf, 1e21)
FAR = 1e13  # beyond what a mechanism of this size can measure


@pytest.fixture(scope="module", params=CASES)
def made(request):
    return CASES[request.param], CASES[request.param].make()


@pytest.fixture(scope="module")
def program(made, tmp_path_factory):
    """Return the C of the controller, or the Function itself."""
    case, law = made
    folder = tmp_path_factory.mktemp("c") / "c"
    if case.in_c:
        return mb.export_c(law, folder).load()
    if case.in_c is False:
        with pytest.raises(ExportError, match="cannot generate C"):
            mb.export_c(law, folder)
    return law.controller.function


def outputs(function, values):
    return {name: np.array(x).ravel() for name, x in function(**values).items()}


def assert_safe(controller, out):
    """Assert that control and state are numbers, the control within its limits."""
    low, high = controller.u_min[:, None], controller.u_max[:, None]
    assert np.all((low <= out["u"]) & (out["u"] <= high))
    assert np.all(np.isfinite(out["u"]) & np.isfinite(out["z_next"]).all())


@pytest.mark.every(3)
def test_the_c_is_the_function_on_a_walk_with_bad_input(made, program):
    (case, law), rng = made, np.random.default_rng(7)
    own, z, seen, flags = law.controller, law.controller.z0, set(), set()
    names = next(signal.components for signal in own.inputs if signal.name == "z")
    kept = [not name.startswith("active.") for name in names]  # a row that just touches is either
    for k in range(TICKS):
        values, is_bad = case.draw(law, rng), k % 8 == 7
        if is_bad:
            wrong = values[rng.choice([name for name, x in values.items() if x.size])]
            wrong[rng.integers(wrong.size)] = BAD[k // 8 % 3]
        ours, theirs = (outputs(f, values | {"z": z}) for f in (own.function, program))
        scale = max(1.0, np.abs(ours["u"]).max())
        for name in ("u", "z_next"):
            picked = np.array(kept) if name == "z_next" else slice(None)
            pair = theirs[name][picked], ours[name][picked]
            np.testing.assert_allclose(*pair, atol=case.accuracy * scale, err_msg=f"{k} {name}")
        assert (ours["status"], ours["flags"]) == (theirs["status"], theirs["flags"]), k
        assert_safe(own, {name: x[:, None] for name, x in theirs.items()})
        assert not is_bad or ours["status"] == Status.BAD_INPUT
        seen, flags = seen | {*ours["status"]}, flags | {*ours["flags"]}
        z = theirs["z_next"]
    assert seen >= case.seen
    assert flags >= case.flags


@pytest.mark.parametrize("kind", CASES | OTHERS)
@pytest.mark.every(3)
def test_each_entry_that_is_no_number_is_bad_input(kind):
    """Also where nothing reads it: whoever fills it is broken, and a later version may read it."""
    case = (CASES | OTHERS)[kind]
    law = case.make()
    own, good = law.controller, case.draw(law, np.random.default_rng(0))
    good["z"] = own.z0
    assert outputs(own.function, good)["status"] != Status.BAD_INPUT
    columns, places = {name: [] for name in good}, []
    for name in good.keys() - {"z"}:
        for entry in range(good[name].size):
            for bad in (*BAD, *[FAR] * (name in ("q", "v"))):
                wrong = np.where(np.arange(good[name].size) == entry, bad, good[name])
                places.append(f"{name}[{entry}] = {bad}")
                for other, value in (good | {name: wrong}).items():
                    columns[other].append(value)
    out = own.function.map(len(places))(**{n: np.array(x).T for n, x in columns.items()})
    wrongly = np.flatnonzero(np.array(out["status"]).ravel() != Status.BAD_INPUT)
    assert [places[k] for k in wrongly] == []
    assert_safe(own, {name: np.array(x) for name, x in out.items()})


@pytest.mark.every(3)
def test_a_state_that_is_lost_costs_no_more_than_what_it_remembers(made, program):
    case, law = made
    values = case.draw(law, np.random.default_rng(1))
    usual = outputs(law.controller.function, values | {"z": law.controller.z0})["status"]
    for bad in (np.nan, np.inf, -1e300):
        for function in (law.controller.function, program):
            out = outputs(function, values | {"z": np.full(law.controller.z0.size, bad)})
            assert_safe(law.controller, {name: x[:, None] for name, x in out.items()})
            expected = Status.BAD_INPUT if case.remembers else usual
            assert not np.isnan(bad) or out["status"] == expected


def test_signals_have_a_name_and_a_unit_for_each_number(made):
    own = made[1].controller
    assert own.contract_violation() == ""
    for side, signals in (("in", own.inputs), ("out", own.outputs)):
        sizes = getattr(own.function, f"numel_{side}"), getattr(own.function, f"name_{side}")()
        assert [signal.name for signal in signals] == sizes[1]
        for signal in signals:
            assert len(set(signal.components)) == len(signal.units) == sizes[0](signal.name)
    assert [signal.name for signal in own.outputs] == list(OUTPUTS)


def test_a_wrong_solution_of_the_solver_is_not_accepted(made):
    (case, law), rng = made, np.random.default_rng(2)
    stages = law.controller.stages
    if stages is None:
        assert not case.in_c
        return
    values = case.draw(law, rng) | {"z": law.controller.z0}
    if stages.prepare is not None:
        known = {name: values[name] for name in stages.prepare.name_in()}
        values["prepared"] = stages.prepare(**known)["prepared"]
    carry = stages.build(**values)["carry"]
    none = dict.fromkeys(("lam_a", "active"), np.zeros(stages.m)) | {"carry": carry}
    for x, claimed in ((np.ones, 1), (np.nan, 1), (100.0, 0)):
        answer = {"x": np.ones(stages.n) if x is np.ones else np.full(stages.n, x)}
        out = outputs(stages.finish, values | none | answer | {"flag": claimed})
        assert out["status"] > 0
        assert_safe(law.controller, {name: part[:, None] for name, part in out.items()})
