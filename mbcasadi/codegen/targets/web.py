"""An export as WebAssembly, and a page that runs it beside a recorded motion."""

import base64
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.codegen.manifest import Manifest
from mbcasadi.codegen.targets.replay import make_folder, program_record, replay_values
from mbcasadi.codegen.text import template
from mbcasadi.errors import CompilerError, ExportError, ShapeError
from mbcasadi.shapes import real_array

CLANG = "clang"
TARGET = ("--target=wasm32", "-std=c99", "-O2", "-ffp-contract=off", "-fno-builtin", "-nostdlib")
LINK = ("-Wl,--no-entry", "-Wl,--allow-undefined", "-Wl,-z,stack-size=262144")


def build_wasm(manifest: Manifest, source: Path, folder: Path) -> Path:
    """Compile the export in `source` to `<name>.wasm` in `folder`, beside `<name>.js` that runs it.

    Raises:
        CompilerError: clang or lld is not installed, or it failed.
        ExportError: the folder cannot be made.
    """
    make_folder(folder)
    name = manifest["name"]
    with tempfile.TemporaryDirectory() as temporary:
        own = Path(temporary)
        values = replay_values(manifest)
        tick = str(values["tick"])
        for phase in ("step", "feedback"):
            tick = tick.replace(f"  {name}_{phase}(", f"  code = {name}_{phase}(")
        values["tick"] = tick
        (own / "web.c").write_text(template("targets/web.c.in", values), encoding="utf-8")
        for header in ("math", "string"):
            text = template(f"targets/web_{header}.h.in", {})
            (own / f"{header}.h").write_text(text, encoding="utf-8")
        target = folder / f"{name}.wasm"
        command = [*find_compiler(CLANG), *TARGET, f"-I{own}", f"-I{source}", *LINK]
        command += [str(own / "web.c"), str(source / f"{name}.c"), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CompilerError(f"clang failed (Debian: clang lld): {done.stderr}")
    (folder / f"{name}.js").write_text(_script(manifest), encoding="utf-8")
    return target


def write_page(
    manifest: Manifest,
    source: Path,
    path: Path,
    inputs: Mapping[str, ArrayLike],
    controls: ArrayLike,
    lines: ArrayLike | None,
) -> None:
    """Write a page that needs no other file: WebAssembly, record and drawing.

    Args:
        manifest, source: of the export.
        path: the HTML file.
        inputs: the record, name → (ticks, size), as in `CProject.time`.
        controls: (ticks, nu) recorded control.
        lines: (ticks, points, 2) the drawing of each tick, one line through all points.

    Raises:
        ShapeError, UnknownNameError: the record does not fit.
        ExportError: the export has no output u.
    """
    record = program_record(manifest, inputs)
    sizes = {signal["name"]: signal["size"] for signal in manifest["outputs"]}
    if "u" not in sizes:
        raise ExportError(f"{manifest['name']} has no output u, but {', '.join(sizes)}")
    u = real_array("controls", controls)
    if u.shape != (len(record), sizes["u"]):
        raise ShapeError(f"controls has shape {u.shape}, expected {(len(record), sizes['u'])}")
    points = real_array("lines", np.zeros((len(record), 0, 2)) if lines is None else lines)
    if points.ndim != 3 or (len(points), points.shape[2]) != (len(record), 2):
        raise ShapeError(f"lines has shape {points.shape}, expected ({len(record)}, points, 2)")
    with tempfile.TemporaryDirectory() as temporary:
        wasm = build_wasm(manifest, source, Path(temporary)).read_bytes()
    names = list(sizes)
    values: dict[str, str | int] = {
        "name": manifest["name"],
        "script": _script(manifest),
        "ticks": len(record),
        "control": sum(sizes[n] for n in names[: names.index("u")]),
        "nu": sizes["u"],
        "lines": points.shape[1],
        "period": repr(manifest["period"] or 1e-3),
        "wasm": base64.b64encode(wasm).decode(),
        "record": _base64(record),
        "controls": _base64(u),
        "points": _base64(points),
    }
    try:
        path.write_text(template("targets/page.html.in", values), encoding="utf-8")
    except OSError as error:
        raise ExportError(
            f"cannot write {path}: {error.strerror}; give the path of a file"
        ) from error


def _script(manifest: Manifest) -> str:
    return template("targets/web.js.in", replay_values(manifest))


def _base64(values: NDArray[np.float64]) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode()
