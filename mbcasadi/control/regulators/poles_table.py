"""The poles of a linear model as a table for notebooks, and their place in the plane."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mbcasadi.inline_svg import COLORS, LIMIT, picture
from mbcasadi.short_text import html_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Poles = NDArray[np.complex128]
MOST_ROWS = 12
REAL = 1e-9  # imaginary part of a real pole, of its size, at most
ZERO = 1e-12  # size of a pole that is zero but for rounding, of the largest entry


def poles_html(title: str, dfdx: NDArray[np.float64], period: float | None) -> str:
    """Return the poles, the least stable first, with frequency and damping; and their plot.

    Args:
        title: of the table.
        dfdx: (nx, nx) of the linear model.
        period: s, of a sampled model; its frequencies are those of `log(z) / period`.
    """
    finite = np.isfinite(dfdx).all() and dfdx.size
    poles = np.linalg.eigvals(dfdx).astype(complex) if finite else np.zeros(0, dtype=complex)
    poles[np.abs(poles) <= ZERO * np.abs(dfdx).max(initial=0.0)] = 0.0
    rates = poles
    if period is not None:
        rates = np.log(np.where(poles == 0, np.finfo(float).tiny, poles)) / period
    order = np.argsort(-rates.real, kind="stable")
    upper = [k for k in order if poles[k].imag >= -REAL * abs(poles[k])]  # one of each pair
    headings = ("pole, 1/s" if period is None else "pole", "", "frequency, rad/s", "damping")
    rows = [_row(poles[k], rates[k]) for k in upper[:MOST_ROWS]]
    if len(upper) > MOST_ROWS:
        rows.append((f"and {len(upper) - MOST_ROWS} more", "", "", ""))
    table = html_rows(title, headings, rows)
    if not rows:
        return table

    def draw(axes: "Axes") -> None:
        draw_poles(axes, poles, sampled=period is not None)

    return table + picture("Poles, and the border of stability", draw)


def _row(pole: complex, rate: complex) -> tuple[str, str, str, str]:
    """Return pole, stability, frequency and damping as text."""
    pair = abs(pole.imag) > REAL * abs(pole)
    text = f"{pole.real + 0.0:.4g}" + (f" ± {abs(pole.imag):.4g}j" if pair else "")
    size = abs(rate)
    damping = f"{-rate.real / size:.3g}" if size else ""
    return text, "unstable" if rate.real > REAL * size else "", f"{size:.4g}", damping


def draw_poles(axes: "Axes", poles: Poles, *, sampled: bool) -> None:
    """Draw poles, and the border of stability: the imaginary axis, or the unit circle."""
    angle = np.linspace(0, 2 * np.pi, 200)
    if sampled:
        axes.plot(np.cos(angle), np.sin(angle), ":", color=LIMIT, linewidth=1.0)
        axes.set_aspect("equal", adjustable="datalim")
    else:
        axes.axvline(0.0, color=LIMIT, linestyle=":", linewidth=1.0)
    axes.plot(poles.real, poles.imag, "x", color=COLORS[0])
    unit = "" if sampled else " / (1/s)"
    axes.set_xlabel(f"real part{unit}")
    axes.set_ylabel(f"imaginary part{unit}")
