"""Controllers of several modes: numbers, contacts and references that a state machine switches."""

from mbcasadi.control.modes.mode import Mode, Transition
from mbcasadi.control.modes.sequence import SequencedLaw, sequence

__all__ = ["Mode", "SequencedLaw", "Transition", "sequence"]
