"""What was generated and compiled before, by content.

A library is found again where the C of all its files, the compiler, its flags and the machine are
the same; the text of generated C where the Functions and the generator are. `MBCASADI_CACHE` names
another folder, or is `off`; `MBCASADI_CACHE_LIMIT` bounds its size, e.g. `500M`. What was used
least recently is removed first. A folder that cannot be read or written costs time, never a build.
"""

from mbcasadi.codegen.cache.store import CacheInfo
from mbcasadi.codegen.cache.store import clear as clear
from mbcasadi.codegen.cache.store import disabled as disabled
from mbcasadi.codegen.cache.store import folder as folder
from mbcasadi.codegen.cache.store import info as info

__all__ = ["CacheInfo"]

NOT_STARRED = ("clear", "disabled", "folder", "info")
"""Public names that `import *` leaves out: they are words that people have variables of."""
