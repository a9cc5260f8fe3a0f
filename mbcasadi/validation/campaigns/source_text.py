"""Functions and objects of a user as text, which tells one version from another."""

import functools
import inspect

from mbcasadi.validation.closed_loop import Policy


def source_of(thing: object) -> str:
    """Return the text of a function, an object's class, or what a policy consists of.

    Pickles have functions of modules by name; their text tells one version from another.
    """
    if isinstance(thing, Policy):
        return "".join(map(source_of, (thing.observe, thing.policy, thing.action)))
    if isinstance(thing, functools.partial):
        return source_of(thing.func)
    try:
        return inspect.getsource(thing if inspect.isroutine(thing) else type(thing))
    except (OSError, TypeError):  # of a compiled module, or typed into an interpreter
        return ""
