"""What was generated and compiled before, by content.

A library is found again where the C of all its files, the compiler, its flags and the machine are
the same; the text of generated C where the Functions and the generator are. `MBCASADI_CACHE` names
another folder, or is `off`; `MBCASADI_CACHE_LIMIT` bounds its size, e.g. `500M`. What was used
least recently is removed first. A folder that cannot be read or written costs time, never a build.
"""

from mbcasadi.codegen.cache.store import CacheInfo, clear, disabled, folder, info

__all__ = ["CacheInfo", "clear", "disabled", "folder", "info"]
