"""`five ablate FILE`: runs what is missing of an ablation and writes its table and page."""

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from five.cli.ablation import page, side_by_side
from five.cli.ablation.config import AblationConfig, read
from five.cli.ablation.execute import Ablation
from five.cli.rundir import ROOT

FOLDER = "ablations"


def ablate(file: Path, report_only: bool, root: Path = ROOT) -> int:
    """Runs the trials that have no result yet, each as long as the file says, then judges and reports; the table is
    rewritten after each seed of all arms. Raises ConfigError, TrialFailed."""
    config = read(file)
    ablation = Ablation(config, root / FOLDER / config.name)
    ablation.open()
    if not report_only:
        side_by_side.run(ablation, lambda text: print(text, flush=True))
    results = collect(ablation)
    write(ablation, results)
    print(page.table(config, results), end="")
    print(f"page: {ablation.place / 'page.html'}")
    return 0


def collect(ablation: Ablation) -> dict[str, list[dict[str, Any]]]:
    """The finished trials' results by arm."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for trial in ablation.config.trials():
        result = ablation.result(trial)
        if result is not None:
            found[trial.arm].append(result)
    return dict(found)


def write(ablation: Ablation, results: Mapping[str, list[dict[str, Any]]]) -> None:
    """Table and page of what there is."""
    config: AblationConfig = ablation.config
    about = json.loads((ablation.place / "ablation.json").read_text())
    page.write(ablation.place / "table.md", page.table(config, results))
    page.write(ablation.place / "page.html", page.render(config, results, about))
