"""What holds for every exported law: its C is the law, and nothing unbounded comes out."""

import inspect
from typing import get_type_hints

import numpy as np
import pytest
from l15_mechanisms import bar_rows
from support.rounding import assert_same_program

from bench.law_cases import CASES, FORCE_LOOP, SURFACE_LOOP, Case, inputs, system_of
from mbcasadi.codegen import export_c
from mbcasadi.control import laws, regulators
from mbcasadi.control.laws import Law

STATES = 1000
SAME = 1e-12
SOLVED_ALIKE = 1e-9  # the solver in Python and the one in C stop at the same accuracy, 1e-10
BAD = (np.nan, np.inf, -np.inf, 1e300)
FAST = ("-O0",)  # of the compiler, not of the law

PULL = 15  # times the references at most, until limits bind


def limited(build, limit=None, **options):
    """Return a builder of a law with limits, and θ of these joints."""

    def build_limited(system):
        theta = options.get("joints")
        chosen = () if theta is None else (laws.joint_coordinates(system, theta),)
        more = {k: v for k, v in options.items() if k != "joints"}
        if limit is not None:
            more["options"] = laws.LawOptions(ctrl_limits=np.tile([-limit, limit], (system.nu, 1)))
        return build(system, *chosen, **more)

    return build_limited


def bar(form):
    """Return servo control of the pose of a bar that two arms carry, L15's example."""
    return limited(
        lambda arms, **more: laws.servo_control(arms, bar_rows(arms), **more), 60.0, form=form
    )


LIMITED = {
    "projected": Case(
        "projected_inverse_dynamics",
        "slider_crank_driven",
        limited(laws.projected_inverse_dynamics, joints=("crank",)),
    ),
    "passive": Case(
        "passive_joint_control", "planar_3rrr", limited(laws.passive_joint_control, 300.0)
    ),
    "force": Case(
        "constraint_force_control",
        "slider_crank_driven",
        limited(laws.constraint_force_control, 15.0, gains=FORCE_LOOP),
    ),
    "hybrid": Case(
        "hybrid_motion_force_control",
        "prr_arm",
        limited(
            laws.hybrid_motion_force_control,
            joints=("tip", "q1"),
            gains=SURFACE_LOOP,
        ),
    ),
    "least_norm": Case("servo_control", "cooperating_arms", bar("least_norm")),
    "figures": Case("servo_control", "cooperating_arms", bar("figures")),
}
"""Laws whose limits bind at these references."""

ONE_OF_EACH = {case.law: case for case in reversed(CASES)} | LIMITED


@pytest.fixture(scope="module", params=ONE_OF_EACH)
def law_and_program(request, tmp_path_factory):
    case = ONE_OF_EACH[request.param]
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


def states_of(case, law, count):
    values = inputs(law, count + count // 5, seed=1)
    values = {name: value[:, :count] for name, value in values.items()}
    assert values["q"].shape[1] == count
    if case in LIMITED.values():
        values["ref"] *= np.linspace(0, PULL, count)
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
    values = states_of(case, law, STATES)
    if case in LIMITED.values():
        ours = assert_same_program(law.function.map(STATES), program.map(STATES), values)
        assert {0.0, 1.0} <= set(ours["status"].ravel())
        return
    errors, ours = differences(law, program, values, STATES)
    worst = max(errors.values())
    assert worst <= (SAME if case.exact else SOLVED_ALIKE), errors
    assert np.all(ours["status"] <= 2)
    assert np.ptp(ours["u"]) > 0


def test_bad_inputs_give_a_status_and_a_control_within_limits(law_and_program):
    case, law, program = law_and_program
    names = [name for name in law.function.name_in() if law.function.numel_in(name)]
    count = 2 * len(names) * len(BAD)
    values, rng = states_of(case, law, count), np.random.default_rng(3)
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


def test_a_bad_measurement_gives_the_command_of_the_tick_before(law_and_program):
    case, law, program = law_and_program
    values = {name: value[:, 0] for name, value in states_of(case, law, 1).items()}
    z, nz, own = law.controller.z0.copy(), law.core.nz, law.controller
    last = (own.u_min.clip(-1, 1) + 3 * own.u_max.clip(-1, 1)) / 4
    z[nz : nz + last.size], z[nz + law.core.safe.size - 1] = last, 1  # solved then
    for name in ("q", "v"):
        broken = values | {"z": z, name: np.full_like(values[name], np.nan)}
        out = program(**broken)
        assert float(out["status"]) == 3
        np.testing.assert_array_equal(out["u"].full().ravel(), last)


def test_states_far_off_the_loops_give_bounded_controls(law_and_program):
    _, law, program = law_and_program
    rng = np.random.default_rng(13)
    names, n = law.function.name_in(), 200
    values = {k: 30 * rng.standard_normal((law.function.numel_in(k), n)) for k in names}
    out = program.map(n)(**values)
    u, own = out["u"].full(), law.controller
    assert np.all((u >= own.u_min[:, None]) & (u <= own.u_max[:, None]))
    assert set(out["status"].full().ravel()) <= {0.0, 1.0, 2.0, 3.0, 4.0}  # 3: the loop is open


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
