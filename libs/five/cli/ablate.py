"""`five ablate FILE`: run the missing trials of an ablation and write its table and page."""

from pathlib import Path

from five.ablation import page, parallel
from five.ablation.config import read
from five.ablation.evaluation import Anchors
from five.ablation.results import AblationResults, assemble
from five.ablation.runner import Ablation, read_description
from five.local.run_folder import ROOT
from five.local.run_lock import FileLock
from rapid.atomic_file import replace_text

FOLDER = "ablations"


def ablate(file: Path, report_only: bool, root: Path = ROOT) -> int:
    """Run the trials without a result, evaluate them and write the report. Return the exit status.

    Table and page are also written after each trial; with ``report_only`` they alone are. Raises ConfigError,
    TrialFailed, RunInUse.
    """
    config = read(file)
    ablation = Ablation(config, root / FOLDER / config.name)
    if report_only:
        ablation.check()
    else:
        with FileLock(ablation.folder / "lock", str(ablation.folder),
                      "wait until that `five ablate` has ended, or end it"):
            ablation.open()
            parallel.run(ablation, say, lambda: write_partial(ablation))
    print(write(ablation), end="")
    print(f"page: {ablation.folder / 'page.html'}")
    return 0


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def write_partial(ablation: Ablation) -> None:
    """Write table and page of the finished trials. An error is printed and stops no trial."""
    try:
        write(ablation)
    except Exception as error:
        say(f"table and page could not be written now: {type(error).__name__}: {error}")


def collect(ablation: Ablation) -> AblationResults:
    """Return the results of the finished trials."""
    kept = [(trial, ablation.result(trial)) for trial in ablation.config.trials()]
    results = [(result, ablation.records(trial)) for trial, result in kept if result is not None]
    anchors = Anchors.read(ablation.anchors_file)
    return assemble(ablation.config, results, anchors.games if anchors else ())


def write(ablation: Ablation) -> str:
    """Write table and page of the finished trials. Return the table."""
    outcome = collect(ablation)
    about = read_description(ablation.description)
    table = page.text(ablation.config, outcome, about)
    replace_text(ablation.folder / "table.md", table)
    replace_text(ablation.folder / "page.html", page.render(ablation.config, outcome, about))
    return table
