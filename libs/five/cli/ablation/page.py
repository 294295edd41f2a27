"""An ablation's results as a Markdown table and as one self-contained page of figures."""

import html
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from five.cli.ablation.compare import curve, last, mean, speedup
from five.cli.ablation.config import AblationConfig
from five.cli.plots import Line, Plot, draw

AXES = {"minutes": ("TrueSkill over wall clock", "minutes", 1.0),
        "hero_steps": ("TrueSkill over samples", "million hero-steps", 1e-6),
        "version": ("TrueSkill over versions", "versions", 1.0)}
Results = Mapping[str, Sequence[Mapping[str, Any]]]  # by arm, one a seed


def table(config: AblationConfig, results: Results) -> str:
    """One row an arm, means over seeds with 95 % intervals, as Markdown."""
    levels = _levels(config, results)
    head = ["arm", "seeds", "TrueSkill", *(f"score against {n}" for n in config.judge.against),
            *(f"speedup to {level:.0f}" for level in levels), "hero-steps/s", "staleness", "reuse"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for arm in config.arms:
        rows = results.get(arm, [])
        if not rows:
            lines.append(f"| {arm} | 0 |" + " - |" * (len(head) - 2))
            continue
        cells = [arm, str(len(rows)), str(mean([r["judged"][-1]["mu"] for r in rows]))]
        cells += [str(mean([last(r, n) for r in rows])) for n in config.judge.against]
        cells += [_factor(speedup(results[config.baseline], rows, level, "version"))
                  if results.get(config.baseline) else "-" for level in levels]
        cells += [str(mean([r["training"][key] for r in rows]))
                  for key in ("hero_steps_per_second", "staleness_mean", "reuse")]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def plots(config: AblationConfig, results: Results) -> list[Plot]:
    """Rating over each axis, and the last version's score against each opponent by arm."""
    found = []
    for axis, (title, label, scale) in AXES.items():
        lines = []
        for arm in config.arms:
            if rows := results.get(arm):
                c = curve(rows, axis)
                lines.append(Line(arm, c.x * scale, c.y, c.low, c.high))
        found.append(Plot(title, "points", lines, target=(0.0, "random play"), note="Means over seeds; the band is "
                          "their 95 % interval.", x_unit=label))
    return found


def render(config: AblationConfig, results: Results, about: Mapping[str, Any]) -> str:
    """The page as HTML text. ``about``: commit and machine of the first trial."""
    cards = "".join(f"<div><h2>{html.escape(p.title)}</h2>{draw(p)}<p>{html.escape(p.note)}</p></div>"
                    for p in plots(config, results))
    rows = [[cell.strip() for cell in line.strip("| \n").split("|")] for line in table(config, results).splitlines()]
    body = "".join("<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>"
                   for tag, row in [("th", rows[0]), *(("td", row) for row in rows[2:])])
    done = sum(len(r) for r in results.values())
    total = len(config.arms) * len(config.seeds)
    machine = about.get("machine", {})
    beside = f", {config.at_once} at once" if config.at_once > 1 else ""
    note = (f"{done} of {total} runs of {config.minutes:g} minutes{beside}; commit {about.get('commit', 'unknown')}, "
            f"{machine.get('cores', '?')} cores of {machine.get('cpu', 'an unknown processor')}; "
            f"made {time.strftime('%Y-%m-%d %H:%M')}")
    return (f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{html.escape(config.name)}</title>"
            "<style>body{font:15px/1.45 system-ui,sans-serif;margin:24px auto;max-width:1200px}"
            "table{border-collapse:collapse;font-size:13px}td,th{padding:4px 10px;border-bottom:1px solid #ddd;"
            "text-align:left}svg{width:100%;height:auto}.grid{display:grid;gap:16px;"
            "grid-template-columns:repeat(auto-fill,minmax(420px,1fr))}p{color:#666;font-size:12px}</style></head>"
            f"<body><h1>{html.escape(config.name)}</h1>{html.escape(config.question)}<p>{html.escape(note)}</p>"
            f"<table>{body}</table><div class='grid'>{cards}</div></body></html>")


def write(path: Path, text: str) -> None:
    """Beside first, then renamed."""
    beside = path.with_name(path.name + ".partial")
    beside.write_text(text)
    beside.replace(path)


def _levels(config: AblationConfig, results: Results) -> list[float]:
    """Ratings at which arms are compared: half of, and nearly all of what the baseline's runs end with."""
    rows = results.get(config.baseline)
    if not rows:
        return []
    end = float(np.mean([r["judged"][-1]["mu"] for r in rows]))
    return [] if end <= 0 else [end * 0.5, end * 0.9]


def _factor(value: float) -> str:
    if math.isnan(value):
        return "neither"
    return "baseline never" if math.isinf(value) else f"{value:.2f}" if value else "never"
