"""The signature of an export: what its callers rely on, as a short hash."""

import hashlib
import json

from mbcasadi.codegen.c_interface import Law, Port

DIGITS = 16
"""Of the hash, hexadecimal."""


def signature(law: Law) -> str:
    """Return the hash of names, sizes and units of the signals, of period and type of numbers.

    Two exports of the same signature are called alike; gains, limits and models may differ.
    """
    relied_on = {
        "name": law.name,
        "inputs": [_of_port(port) for port in law.inputs],
        "outputs": [_of_port(port) for port in law.outputs],
        "period": law.period,
        "real": law.real,
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
