"""From a plan and a law that follows it to one folder of C, with two functions."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen.controller import common_c, controller_c
from mbcasadi.codegen.count import operations
from mbcasadi.codegen.export import start_of
from mbcasadi.codegen.folder import MANIFEST, require_free, write_folder
from mbcasadi.codegen.header import header_h
from mbcasadi.codegen.manifest import manifest, manifest_text, signal_entry
from mbcasadi.codegen.supervision.layout import supervision_entry
from mbcasadi.codegen.supervision.supervised_c import supervision_files
from mbcasadi.codegen.supervision.supervision import Supervision
from mbcasadi.codegen.text import package_version
from mbcasadi.codegen.two_rates.controller import TwoRatesManifest
from mbcasadi.codegen.two_rates.interface import (
    OPTIONAL,
    Interface,
    controller_of,
    interface_of,
    without,
)
from mbcasadi.codegen.two_rates.pages import (
    two_rates_cmake,
    two_rates_flags,
    two_rates_main,
    two_rates_readme,
)
from mbcasadi.codegen.two_rates.plugin import two_rates_plugin, two_rates_plugin_entry
from mbcasadi.codegen.two_rates.project import FORMAT, TwoRatesProject
from mbcasadi.codegen.two_rates.source import (
    state_doubles,
    two_rates_doubles,
    two_rates_header,
    two_rates_hpp,
    two_rates_source,
)
from mbcasadi.codegen.two_rates.watch import watch_of
from mbcasadi.description.two_rates import TwoRates
from mbcasadi.progress import notes_to

OWN_FRAMES = 512
"""Bytes of the stack that the functions around the laws need, arrays apart."""


@checked
def export_two_rates(
    mpc: TwoRates,
    folder: str | Path,
    *,
    name: str | None = None,
    latest: float | None = None,
    overwrite: bool = False,
    discard_changes: bool = False,
    example: Mapping[str, ArrayLike] | None = None,
    mujoco_plugin: bool = False,
    supervision: Supervision | None = None,
    progress: Callable[[str], None] | None = None,
) -> TwoRatesProject:
    """Write a plan and the law that follows it as one folder of C99 with two functions.

    `<name>_plan` computes a plan and hands it to `<name>_tick`, which follows the newest one whose
    moment has come. Both may run in threads of their own, without locks; they allocate nothing,
    print nothing and wait for nobody. A plan of a measurement at t acts from t + `mpc.delay`
    periods on; one without a solution is not handed on. Where none is young enough, u is the safe
    output of the law and the tick says so. The same input gives the same bytes.

    Args:
        mpc: plan, law and what connects them, of `mpc.whole_body_mpc` for example.
        folder: created if it does not exist; written completely or not at all.
        name: prefix of the C symbols; that of the plan, without `_plan`, by default.
        latest: age at which a plan is left, s; its length by default.
        overwrite, discard_changes: as in `export_c`.
        example: inputs of the example program that plan and tick share, by name; those of the
            authors by default.
        mujoco_plugin: also write an engine plugin of MuJoCo, `<name>_mujoco.c`, which plans in the
            tick that begins a period, and its declaration in MJCF, `<name>_mujoco.xml`.
        supervision: of the ticks, as in `export_c`: plausible inputs, a watchdog, a safe law,
            limits of rate, a log; its `inputs` name those of the plan too, whose jump in one of its
            periods is that in `every` ticks. `<name>_tick` has `log` and `sample` behind `memory`.
        progress: called with one line for each step.

    Returns:
        The folder as an object that builds, loads and runs it.

    Raises:
        ExportError: illegal name, parts that do not fit, no generated C, folder not writable, or
            with files that would be lost; laws that a plugin cannot call, or that cannot be
            supervised.
        UnknownNameError, ShapeError: the example, u0, z0 or the supervision do not fit.
        ProblemError: a `latest` that is not positive, `every` or `delay` that are no counts, or
            numbers of the supervision that are out of range.
    """
    report = notes_to(progress)
    target = Path(folder).absolute()
    require_free(target, overwrite=overwrite, discard_changes=discard_changes)
    interface = interface_of(mpc, name, latest)
    if supervision is not None:
        law, whole = interface.law, controller_of(mpc.law).function
        ports, every = interface.plan_inputs, interface.every
        interface = replace(interface, watch=watch_of(supervision, law, whole, ports, every))
    count = sum(operations(f) for law in interface.parts.values() for f in law.generated)
    report(f"{interface.name}: generating C for {count} operations")
    given = _start(mpc, interface) | dict(example or {})
    contents = _contents(interface, given, mujoco_plugin=mujoco_plugin)
    content = _manifest(interface, contents, mujoco_plugin=mujoco_plugin)
    contents[MANIFEST] = manifest_text(content).encode()
    write_folder(target, contents, overwrite=overwrite, discard_changes=discard_changes)
    lines = sum(data.count(b"\n") for file, data in contents.items() if file.endswith(".c"))
    report(f"{interface.name}: {lines} lines of C in {target}")
    return TwoRatesProject(target, interface.name, json.loads(contents[MANIFEST]), progress)


def _start(mpc: TwoRates, interface: Interface) -> dict[str, ArrayLike]:
    """Return the inputs from which the authors let an example start."""
    plan, law = start_of(mpc.plan, interface.plan), start_of(mpc.law, interface.law)
    inputs = without((*interface.plan_inputs, *interface.tick_inputs), OPTIONAL)
    names = {port.name for port in inputs}
    return {key: value for key, value in (plan | law).items() if key in names}


def _contents(
    interface: Interface, example: Mapping[str, ArrayLike], *, mujoco_plugin: bool
) -> dict[str, bytes]:
    texts = {
        f"{interface.name}.h": two_rates_header(interface),
        f"{interface.name}.hpp": two_rates_hpp(interface),
        f"{interface.name}.c": two_rates_source(interface),
        "main.c": two_rates_main(interface, example),
        "CMakeLists.txt": two_rates_cmake(interface),
        "README.md": two_rates_readme(interface, mujoco_plugin=mujoco_plugin),
    }
    if mujoco_plugin:
        texts |= two_rates_plugin(interface, example)
    for law in interface.parts.values():
        texts |= {f"{law.name}.h": header_h(law), f"{law.name}.c": controller_c(law)}
    texts[f"{interface.common.name}.c"] = common_c(interface.common)
    contents = {file: text.encode() for file, text in texts.items()}
    watch = interface.watch
    return contents if watch is None else contents | supervision_files(watch.ticks, contents)


def _manifest(
    interface: Interface, contents: Mapping[str, bytes], *, mujoco_plugin: bool
) -> TwoRatesManifest:
    parts = {
        part: manifest(law, "wheel", {f: contents[f] for f in (f"{law.name}.c", f"{law.name}.h")})
        for part, law in interface.parts.items()
    }
    watch, law = interface.watch, parts["law"]
    stacks = {part: int(entry["stack_bytes"]) for part, entry in parts.items()}
    if watch is not None:
        law["supervision"] = entry = supervision_entry(watch.ticks, contents)
        stacks["law"] = entry["stack_bytes"]
    slow, fast = interface.periods
    followed = sum(port.size for port in interface.follow.outputs)  # of a tick that interrupts
    return {
        "format": FORMAT,
        "name": interface.name,
        "signature": interface.signature,
        "period": fast,
        "plan_period": slow,
        "every": interface.every,
        "delay": interface.delay,
        "latest": interface.latest,
        "plan_inputs": [signal_entry(p) for p in interface.plan_inputs],
        "plan_outputs": [signal_entry(p) for p in interface.plan_outputs],
        "inputs": [signal_entry(p) for p in interface.tick_inputs],
        "outputs": [signal_entry(p) for p in interface.tick_outputs],
        "memory_bytes": 8 * two_rates_doubles(interface),
        "state_bytes": 8 * state_doubles(interface),
        "stack_bytes": {
            "plan": OWN_FRAMES + max(stacks["references"], stacks["plan"]),
            "tick": OWN_FRAMES + 8 * followed + max(stacks["follow"], stacks["law"]),
        },
        "flags": list(two_rates_flags(interface)),
        "mujoco": two_rates_plugin_entry(interface) if mujoco_plugin else None,
        "parts": parts,
        "versions": {"mbcasadi": package_version(), "casadi": ca.CasadiMeta.version()},
        "sha256": {
            file: hashlib.sha256(data).hexdigest() for file, data in sorted(contents.items())
        },
    }
