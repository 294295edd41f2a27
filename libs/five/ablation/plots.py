"""Plots of an ablation's page as SVG."""

import io
from dataclasses import dataclass

import matplotlib
import numpy as np
import numpy.typing as npt

matplotlib.use("Agg")
from matplotlib import pyplot as plt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PlotLine:
    """A curve: x, y, and optionally a band around it. A ``muted`` one is grey and not in the legend."""

    label: str
    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None
    muted: bool = False


@dataclass(frozen=True)
class Plot:
    """Line plot. ``target``: a named value drawn as a dashed line."""

    title: str
    unit: str
    lines: list[PlotLine]
    target: tuple[float, str] | None = None
    note: str = ""
    x_unit: str = "minutes"


def render_svg(plot: Plot) -> str:
    """Return the plot as an SVG element."""
    figure, axes = plt.subplots(figsize=(6.4, 3.0), layout="constrained")
    for curve in plot.lines:
        style = {"color": "#bbbbbb", "zorder": 1} if curve.muted else {"label": curve.label}
        (drawn,) = axes.plot(curve.x, curve.y, lw=1.6, marker="o" if len(curve.x) < 30 else None, ms=3, **style)
        if curve.low is not None and curve.high is not None:
            axes.fill_between(curve.x, curve.low, curve.high, color=drawn.get_color(), alpha=0.18, lw=0)
    if plot.target is not None:
        axes.axhline(plot.target[0], color="#666666", ls="--", lw=1, label=plot.target[1])
    axes.set_xlabel(plot.x_unit)
    axes.set_ylabel(plot.unit)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if any(len(c.x) for c in plot.lines):
        figure.legend(loc="outside upper left", fontsize=7, ncols=4, frameon=False)
    else:
        axes.text(0.5, 0.5, "no data yet", ha="center", va="center", transform=axes.transAxes, color="#888888")
    out = io.StringIO()
    figure.savefig(out, format="svg")
    plt.close(figure)
    text = out.getvalue()
    return text[text.index("<svg") :]
