"""Packages of the extra `tools` are imported where they are used, not with the library."""

import json
import subprocess
import sys

TOOLS = ("matplotlib", "jinja2", "pydantic", "rich", "typer")


def test_the_library_does_not_import_the_packages_of_the_tools():
    code = (
        "import json, sys, mbcasadi.plant\n"
        "from mbcasadi.validation import *\n"
        "print(json.dumps([name.split('.')[0] for name in sys.modules]))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    imported = set(json.loads(process.stdout))
    assert {"casadi", "mujoco"} <= imported
    assert not imported & set(TOOLS)
