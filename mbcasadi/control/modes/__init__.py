"""Controllers of several modes: numbers, contacts and references that a state machine switches."""

from mbcasadi.control.modes.mode import ControlMode, Transition
from mbcasadi.control.modes.sequence import SequencedLaw, sequence

__all__ = ["ControlMode", "SequencedLaw", "Transition", "sequence"]
