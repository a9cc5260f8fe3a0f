"""A Cortex-M7 without an operating system, in QEMU: numbers, stack, flash, RAM, instructions."""

import numpy as np
import pytest
from programs import MAKERS, difference, other_sines, require

from mbcasadi import codegen
from mbcasadi.codegen.targets.cortex_m7 import INSTRUCTIONS_PER_TICK, STACK, run_firmware
from mbcasadi.codegen.timing import operations_at

LOOSE = 2.0  # the manifest's stack over what the compiler uses
# A multiplication with its two loads, its store and its part of the loop; a sine counts as one
# operation and takes 300 instructions, which only small laws notice.
INSTRUCTIONS = 4.0


@pytest.fixture(scope="session")
def emulated(recorded, tmp_path_factory):
    """Return a function from a name to the run in the emulator and the firmware's folder."""
    require("arm-none-eabi-gcc", "gcc-arm-none-eabi libnewlib-arm-none-eabi")
    require("qemu-system-arm", "qemu-system-arm")
    made = {}

    def of(name):
        if name not in made:
            folder, project = tmp_path_factory.mktemp(f"m7_{name}"), recorded(name).project
            project.cortex_m7(folder, inputs=recorded(name).inputs)
            record = np.fromfile(folder / "inputs", "<f8")
            made[name] = run_firmware(project.manifest, folder, recorded(name).inputs), folder
            assert np.array_equal(record, np.fromfile(folder / "inputs", "<f8"))
        return made[name]

    return of


@pytest.mark.parametrize("name", MAKERS)
def test_the_numbers_are_those_of_x86(name, emulated, recorded, reference, tmp_path):
    run, _ = emulated(name)
    gap = difference(run.replay, reference(name))
    print(name, gap)
    assert gap < other_sines(recorded(name), tmp_path)


@pytest.mark.parametrize("name", MAKERS)
def test_the_stack_is_bounded_by_the_manifest(name, emulated, recorded):
    run, _ = emulated(name)
    project = recorded(name).project
    footprint = project.footprint("cortex-m7")
    print(footprint, run.stack_bytes)
    assert run.stack_bytes < STACK / 2
    assert run.stack_bytes <= project.manifest["stack_bytes"]
    assert footprint.stack_bytes <= project.manifest["stack_bytes"] <= LOOSE * footprint.stack_bytes


@pytest.mark.parametrize("name", MAKERS)
def test_the_readme_says_how_wide_the_rows_are(name, emulated):
    run, folder = emulated(name)
    text = (folder / "README.md").read_text()
    read, write = (
        int(text.split(f"| `{file}` | ")[1].split()[0]) for file in ("inputs", "outputs")
    )
    ticks = len(run.replay.outputs)
    assert np.fromfile(folder / "inputs", "<f8").size == read * ticks
    assert np.fromfile(folder / "outputs", "<f8").size == write * ticks


@pytest.mark.parametrize("command", ["gcc", "aarch64-linux-gnu-gcc", "arm-none-eabi-gcc"])
@pytest.mark.parametrize("flags", ["-O1", "-O2", "-O3", "-Os"])
@pytest.mark.parametrize("name", ["four_bar", "quadruped", "lqr"])
def test_the_bound_holds_for_each_compiler(name, flags, command, recorded):
    require(command, f"{command.removesuffix('-gcc')}")
    found = recorded(name).project.footprint(command, (flags,))
    assert found.stack_bytes <= found.stack_bound_bytes <= LOOSE * found.stack_bytes


@pytest.mark.parametrize("name", MAKERS)
def test_flash_and_static_memory_are_those_of_the_map(name, emulated, recorded):
    _, folder = emulated(name)
    footprint = recorded(name).project.footprint("cortex-m7")
    lines = (folder / "firmware.map").read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Linker script and memory"))
    sizes = {".text": 0, ".rodata": 0, ".data": 0, ".bss": 0}
    own, section = None, ""
    for line in lines[start:]:
        words = line.split()
        section = words[0] if words and words[0].startswith(".") else section
        at = next((i for i, w in enumerate(words) if w.startswith("0x")), None)
        if at is None or len(words) < at + 3 or not words[at + 2].endswith(".o"):
            continue
        own = own or words[at + 2]  # the first object behind `law.c`'s vectors
        kind = next((k for k in sizes if section.startswith(k)), None)
        if kind and words[at + 2] == _law_object(lines, recorded(name).project.name):
            sizes[kind] += int(words[at + 1], 16)
    flash = sizes[".text"] + sizes[".rodata"] + sizes[".data"]
    assert 0 < flash <= footprint.flash_bytes  # functions that nothing calls are left out
    assert sizes[".data"] + sizes[".bss"] <= footprint.static_bytes


def _law_object(lines, name):
    """Return the object that has the law's step."""
    at = next(i for i, line in enumerate(lines) if line.strip() == f".text.{name}_step")
    return lines[at + 1].split()[-1]


@pytest.mark.parametrize("name", MAKERS)
def test_no_tick_takes_more_instructions_than_its_iterations_allow(name, emulated, recorded):
    run, _ = emulated(name)
    _assert_bounded(recorded(name).project.manifest, run)


@pytest.mark.parametrize(("n", "m"), [(4, 8), (12, 32), (30, 60)])
def test_the_bound_holds_for_problems_with_many_iterations(n, m, tmp_path):
    require("arm-none-eabi-gcc", "gcc-arm-none-eabi libnewlib-arm-none-eabi")
    require("qemu-system-arm", "qemu-system-arm")
    from codegen_problems import least_distance_controller

    project = codegen.export_c(least_distance_controller(n, m), tmp_path / "out")
    rng = np.random.default_rng(n)
    inputs = {"A": rng.standard_normal((200, m * n)), "lower": rng.standard_normal((200, m))}
    inputs["lower"] += np.arange(200)[:, None] / 100 - 1.5  # feasible first, contradictions later
    inputs["upper"] = np.full((200, m), 1e30)
    project.cortex_m7(tmp_path / "m7")
    run = run_firmware(project.manifest, tmp_path / "m7", inputs)
    assert run.replay.iterations.max() > n / 2
    _assert_bounded(project.manifest, run)


def _assert_bounded(manifest, run):
    instructions, iterations = run.replay.clock, run.replay.iterations
    bounds = np.array([operations_at(manifest, int(k)) for k in iterations])
    ratio = (instructions - INSTRUCTIONS_PER_TICK) / bounds
    print(manifest["name"], iterations.max(), instructions.max(), bounds.max(), ratio.max())
    assert ratio.max() < INSTRUCTIONS
    assert instructions.min() > 0
