"""What single precision costs a controller."""

from mbcasadi.validation.precision.compare_precision import (
    Distribution,
    PrecisionReport,
    compare_precision,
)

__all__ = ["Distribution", "PrecisionReport", "compare_precision"]
