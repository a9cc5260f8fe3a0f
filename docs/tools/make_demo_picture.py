"""Draw docs/images/demo.png: each part of `mbcasadi demo`, as pictures and as one plot.

Run it from the project's folder: `python docs/tools/make_demo_picture.py`. Needs a renderer (EGL or
OSMesa) and a C compiler.
"""

from io import BytesIO
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from mbcasadi.validation.demo import demo
from mbcasadi.validation.run.run import Run

OUT = Path(__file__).parents[1] / "images" / "demo.png"
SHOWN = (2, 4)  # frames of each run
INK, LINE, LIMIT = "#333333", "#26547c", "#d1495b"


def picture(axes: Axes, png: bytes, caption: str) -> None:
    """Show one rendered frame."""
    axes.imshow(plt.imread(BytesIO(png)))
    axes.set_axis_off()
    axes.text(0.02, 0.04, caption, transform=axes.transAxes, fontsize=8, color=INK)


def torques(axes: Axes, run: Run) -> None:
    """Plot the controls that the generated C gave, and their limits where they are reached."""
    record = run.recording
    axes.plot(record.t, record.u, lw=0.8, color=LINE, alpha=0.75)
    limits = run.controller.u_max
    for limit in np.unique(limits[np.abs(record.u).max(axis=0) > 0.95 * limits]):
        for side in (-limit, limit):
            axes.axhline(side, color=LIMIT, lw=0.8, ls=":")
    axes.set_xlabel("t / s", fontsize=8)
    axes.set_ylabel("torque / N m", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    """Run the demonstration and compose the picture."""
    report = demo()
    rows = len(report.runs)
    figure, grid = plt.subplots(
        rows, len(SHOWN) + 1, figsize=(9.5, 2.5 * rows), width_ratios=[1] * len(SHOWN) + [1.25]
    )
    for axes, run in zip(grid, report.runs, strict=True):
        for cell, k in zip(axes, SHOWN, strict=False):
            picture(cell, run.frames[k], f"{run.frame_times[k]:.1f} s")
        torques(axes[-1], run)
        axes[0].set_title(run.name, fontsize=9, color=INK, loc="left")
    figure.tight_layout()
    OUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUT, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
