"""The signature of an export: what its callers rely on, as a short hash."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from mbcasadi.codegen.c_interface import Law, Port

DIGITS = 16
"""Of the hash, hexadecimal."""


def signature(law: Law) -> str:
    """Return the hash of names, sizes and units of the signals, of period and type of numbers.

    Two exports of the same signature are called alike; gains, limits and models may differ.
    """
    inputs, outputs = ([_of_port(p) for p in ports] for ports in (law.inputs, law.outputs))
    return _hash(law.name, inputs, outputs, law.period, law.real)


def signature_of_manifest(manifest: Mapping[str, Any]) -> str:
    """Return the signature of what a manifest says of the signals."""
    keys = ("name", "shape", "size", "components", "units")
    inputs, outputs = (
        [[entry.get(key) for key in keys] for entry in manifest[side]]
        for side in ("inputs", "outputs")
    )
    real = manifest.get("real", "double")
    return _hash(manifest["name"], inputs, outputs, manifest.get("period"), real)


def _hash(
    name: str,
    inputs: Sequence[object],
    outputs: Sequence[object],
    period: float | None,
    real: str,
) -> str:
    relied_on = {
        "name": name,
        "inputs": inputs,
        "outputs": outputs,
        "period": period,
        "real": real,
    }
    text = json.dumps(relied_on, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def _of_port(port: Port) -> list[object]:
    return [
        port.name,
        list(port.sparsity.shape),
        port.size,
        list(port.components),
        list(port.units),
    ]
