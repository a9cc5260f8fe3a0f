"""DAQP's headers and static library, from CasADi's wheel."""

from pathlib import Path

import casadi as ca

from mbcasadi.errors import ExportError

HEADERS = ("daqp.h", "factorization.h", "auxiliary.h", "constants.h", "types.h")
LIBRARY = "libdaqpstat.a"


def wheel_files() -> dict[str, bytes]:
    """Return DAQP's headers, static library and licence, by their path in the export.

    Raises:
        ExportError: this CasADi does not contain them.
    """
    root = Path(ca.__file__).parent
    sources = {f"daqp/include/daqp/{h}": root / "include" / "daqp" / h for h in HEADERS}
    sources[f"daqp/{LIBRARY}"] = root / LIBRARY
    sources["daqp/LICENSE"] = root / "include" / "licenses" / "daqp-external" / "LICENSE"
    missing = [str(path) for path in sources.values() if not path.is_file()]
    if missing:
        raise ExportError(
            f"this CasADi comes without DAQP ({missing[0]} is not there); install CasADi from "
            'PyPI, or export with daqp="system" and build with -DDAQP_DIR=<folder of DAQP>'
        )
    return {name: path.read_bytes() for name, path in sources.items()}
