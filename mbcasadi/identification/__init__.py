"""Physical parameters from measured motions, of mechanisms with loops and passive joints too."""

from mbcasadi.identification.base_parameters import BaseParameters, base_parameters
from mbcasadi.identification.identify import Identification, predicted_controls
from mbcasadi.identification.identify import identify as identify
from mbcasadi.identification.samples import Samples, closed_samples, filtered_samples

__all__ = [
    "BaseParameters",
    "Identification",
    "Samples",
    "base_parameters",
    "closed_samples",
    "filtered_samples",
    "predicted_controls",
]

NOT_STARRED = ("identify",)
"""Public names that `import *` leaves out: they are words that people have variables of."""
