"""A stub of a C++ compiler: a peer's source becomes the program of that name in this folder."""

import sys
from pathlib import Path

arguments = sys.argv[1:]
source = next(Path(each).stem for each in arguments if each.endswith(".cpp"))
program = Path(__file__).with_name(f"{source}.py")
target = Path(arguments[arguments.index("-o") + 1])
target.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" "$@"\n')
target.chmod(0o755)
