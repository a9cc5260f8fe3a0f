"""A tick whose solver is stopped by the limit of iterations says so, with the safe output."""

import ctypes

import numpy as np
import pytest
from test_single_precision import horizon, iteration, phased, standing

from mbcasadi import codegen
from mbcasadi.codegen.calls import new_memory, pointer
from mbcasadi.codegen.sizes import most_iterations
from mbcasadi.description.status import Status

TICKS = 60
CASES = {"quadruped": standing, "linear MPC": horizon}
MOVED = {  # input, spread
    "quadruped": ("v", 3.0),
    "linear MPC": ("q", 0.3),
    "real-time iteration": ("q", 0.3),
}
CASES |= {"real-time iteration": iteration, "two phases, by hand": phased}


def ticks_of(name):
    """Return the controller and inputs of ticks that change the active set."""
    controller, _ = CASES[name]()
    rng = np.random.default_rng(3)
    if name == "two phases, by hand":
        return controller, [
            {"q": rng.normal(size=2), "ref": 1.5 * rng.normal(size=3)} for _ in range(TICKS)
        ]
    start = controller.example_inputs()
    function = controller.controller.function
    moved, spread = MOVED[name]
    base = np.asarray(start.get(moved, np.zeros(function.numel_in(moved))))
    rows = base + spread * rng.standard_normal((TICKS, base.size))
    known = {k: x for k, x in start.items() if k != "z" and k in function.name_in()}
    return controller, [known | {moved: row} for row in rows]


@pytest.mark.parametrize(
    ("name", "real"), [("linear MPC", "float"), *((name, "double") for name in CASES)]
)
@pytest.mark.every(5)
def test_a_stopped_tick_has_the_status_of_the_limit_and_a_safe_output(name, real, tmp_path):
    controller, rows = ticks_of(name)
    data = getattr(controller, "controller", controller)
    project = codegen.export_c(controller, tmp_path / "c", real=real)
    library = project.build(flags=("-O0",)).path
    free, limited = (new_memory(project.manifest, library) for _ in range(2))
    set_limit = getattr(limited.library, f"{project.name}_limit_iterations")
    set_limit(pointer(limited.block), ctypes.c_int(0))
    z, stopped = np.array(project.manifest["z0"]), 0
    kind = np.float32 if real == "float" else float
    lower, upper = data.u_min.astype(kind), data.u_max.astype(kind)
    for row in rows:
        whole = project.step(free, row | {"z": z})
        short = project.step(limited, row | {"z": z})
        assert np.all((short["u"] >= lower) & (short["u"] <= upper))
        assert np.isfinite(short["u"]).all()
        status = int(short["status"][0])
        if status in (0, 1):  # it needs no iteration from this active set
            size = max(1.0, np.abs(whole["u"]).max())
            np.testing.assert_allclose(short["u"], whole["u"], atol=1e4 * np.finfo(kind).eps * size)
        else:
            assert status == Status.LIMIT or status == whole["status"][0]
            stopped += status == Status.LIMIT
        z = whole["z_next"]
    assert stopped > TICKS / 10
    set_limit(pointer(limited.block), ctypes.c_int(10_000))
    again = project.step(limited, rows[-1] | {"z": z})
    np.testing.assert_array_equal(again["u"], project.step(free, rows[-1] | {"z": z})["u"])


def test_each_row_may_enter_and_leave():
    for m, n in ((3, 2), (24, 9), (400, 2)):
        assert most_iterations(m, n) >= 2 * (m + n)


@pytest.mark.parametrize("cone", ["inner", "quadratic"])
def test_no_tick_takes_more_iterations_than_its_limit(cone, tmp_path):
    """Newton's steps on quadratic cones turn several planes at once: each is an iteration."""
    controller, inputs = standing(cone=cone)
    project = codegen.export_c(controller, tmp_path / "c")
    memory = new_memory(project.manifest, project.build(flags=("-O0",)).path)
    spent, most = getattr(memory.library, f"{project.name}_iterations"), []
    for limit in (0, 1, 3, 7, 12, 20, 100):
        set_limit = getattr(memory.library, f"{project.name}_limit_iterations")
        set_limit(pointer(memory.block), ctypes.c_int(limit))
        ticks = []
        for q, v in zip(inputs["q"][:40], 5 * inputs["v"][:40], strict=True):
            project.step(memory, {"q": q, "v": v, "ref": inputs["ref"]})
            ticks.append(spent(pointer(memory.block)))
        assert max(ticks) <= limit
        most.append(max(ticks))
    assert most[3] == 7  # it was reached
