"""`five ablate FILE`: runs what is missing of an ablation and writes its table and page."""

import json
from pathlib import Path

from five.ablation import page, parallel
from five.ablation.config import read
from five.ablation.evaluation import Anchors
from five.ablation.results import Outcome, assemble
from five.ablation.runner import Ablation
from five.local.run_folder import ROOT

FOLDER = "ablations"


def ablate(file: Path, report_only: bool, root: Path = ROOT) -> int:
    """Runs the trials that have no result yet, each as long as the file says, then judges and reports; table and page
    are written again after each trial. Raises ConfigError, TrialFailed."""
    config = read(file)
    ablation = Ablation(config, root / FOLDER / config.name)
    ablation.open()
    if not report_only:
        parallel.run(ablation, say, lambda: in_between(ablation))
    print(write(ablation), end="")
    print(f"page: {ablation.place / 'page.html'}")
    return 0


def say(text: str) -> None:
    """A line to the terminal, at once."""
    print(text, flush=True)


def in_between(ablation: Ablation) -> None:
    """Table and page of what there is, while more is to come: what keeps them from being written costs no trial."""
    try:
        write(ablation)
    except Exception as error:
        say(f"table and page could not be written now: {type(error).__name__}: {error}")


def collect(ablation: Ablation) -> Outcome:
    """What the finished trials have brought."""
    kept = [(trial, ablation.result(trial)) for trial in ablation.config.trials()]
    results = [(result, ablation.records(trial)) for trial, result in kept if result is not None]
    anchors = Anchors.read(ablation.anchors_file)
    return assemble(ablation.config, results, anchors.games if anchors else ())


def write(ablation: Ablation) -> str:
    """Writes table and page of what there is; returns the table."""
    outcome = collect(ablation)
    about = json.loads((ablation.place / "ablation.json").read_text())
    table = page.text(ablation.config, outcome, about)
    page.write(ablation.place / "table.md", table)
    page.write(ablation.place / "page.html", page.render(ablation.config, outcome, about))
    return table
