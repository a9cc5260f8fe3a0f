"""Ctrl-C that is not lost.

CasADi's Python wrapper clears the errors that arise while it converts arguments, a
`KeyboardInterrupt` among them; of a second of building a controller that is a third. An interrupt
that vanishes before somebody has handled it is raised again.
"""

import _thread
import signal
import sys
import threading
import time
from contextlib import suppress
from types import FrameType

PAUSE = 0.05
"""s, until an interrupt is raised again: then by other code than that which dropped it."""

_handled = False


class CtrlC(KeyboardInterrupt):
    """What Ctrl-C raises from `keep_interrupts` on."""

    def __del__(self) -> None:
        """Raise again a moment later, in the main thread, unless the interrupt was handled."""
        if not _handled:
            with suppress(RuntimeError):  # Python is at its end: no thread starts
                _thread.start_new_thread(_raise_again, ())


def keep_interrupts() -> None:
    """Let Ctrl-C raise `CtrlC`, unless this process ignores it or handles it itself."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _raise)


def settle() -> None:
    """Call this where an interrupt has been handled: it is not raised again."""
    global _handled
    _handled = True


def _raise_again() -> None:
    time.sleep(PAUSE)
    if _handled:
        return
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:  # ends also what the main thread waits for
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def _raise(_signal: int, _frame: FrameType | None) -> None:
    global _handled
    _handled = False
    raise CtrlC
