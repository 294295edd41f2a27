"""`five sweep FILE`: search for the best values of a preset's keys, confirm the best, and write table and page."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path

from five.ablation import parallel
from five.ablation.experiment import overrides
from five.ablation.runner import Ablation, read_description
from five.ablation.tables import ResultTable, tables
from five.cli.ablate import collect as collect_ablation
from five.cli.ablate import say
from five.local.run_folder import ROOT
from five.local.run_lock import FileLock
from five.run.load import ConfigError
from five.sweep.config import DEFAULT, read
from rapid.atomic_file import replace_text

try:
    from five.sweep import report
    from five.sweep.results import collect, overrides_of
    from five.sweep.search import Search, SweepFolder
    from five.sweep.study import SweepStudy
except ModuleNotFoundError as missing:
    if missing.name != "optuna":
        raise
    raise ConfigError("Optuna is not installed: in the checkout run make setup or pip install -e '.[sweep]'") from None

FOLDER = "sweeps"


def sweep(file: Path, report_only: bool, settings: bool, root: Path = ROOT) -> int:
    """Search, confirm and write the report. Return the exit status.

    With ``settings`` only print the winner's overrides. Table and page are also written after each variant. Raises
    ConfigError, TrialFailed, RunInUse.
    """
    config = read(file)
    folder = SweepFolder(config, root / FOLDER / config.name)
    if settings:
        return print_winner(folder)
    if report_only and folder.description.exists():
        folder.check()
    else:
        folder.open()
    if not report_only:
        with FileLock(folder.folder / "lock", str(folder.folder), "wait until that `five sweep` has ended, or end it"):
            Search(folder, say, lambda: write_partial(folder)).run()
            study = SweepStudy.read(config, folder.folder)
            confirmation = folder.confirmation(study.variants()) if study else None
            if confirmation is not None:
                parallel.run(confirmation, say, lambda: write_partial(folder))
    print(write(folder), end="")
    print(f"page: {folder.folder / 'page.html'}")
    return 0


def print_winner(folder: SweepFolder) -> int:
    """Print the winner's overrides as options of `five train`. Raises ConfigError if no variant is evaluated yet."""
    results = collect(folder, SweepStudy.read(folder.config, folder.folder))
    if results.winner is None:
        raise ConfigError(f"{folder.folder}: no variant is evaluated yet")
    if results.winner == DEFAULT:
        print("no variant is better than the preset's own values", file=sys.stderr)
    for override in overrides(overrides_of(results, results.winner)):
        print(f"--set {shlex.quote(override)}")
    return 0


def write_partial(folder: SweepFolder) -> None:
    """Write table and page of the variants so far. An error is printed and stops no run."""
    try:
        write(folder)
    except Exception as error:
        say(f"table and page could not be written now: {type(error).__name__}: {error}")


def write(folder: SweepFolder) -> str:
    """Write table and page of the variants so far. Return the table."""
    study = SweepStudy.read(folder.config, folder.folder)
    results = collect(folder, study)
    about = read_description(folder.description)
    confirmation = folder.confirmation(study.variants()) if study else None
    compared = confirmation_tables(confirmation, int(about["machine"]["cores"])) if confirmation else []
    table = report.text(folder.config, results, compared, about)
    replace_text(folder.folder / "table.md", table)
    replace_text(folder.folder / "page.html", report.render(folder.config, results, compared, about))
    return table


def confirmation_tables(ablation: Ablation, cores: int) -> list[ResultTable]:
    """Return the ablation's tables of the confirmation."""
    outcome = collect_ablation(ablation)
    found = tables(ablation.config, outcome, cores) if outcome.runs else []
    return [replace(table, title=f"Confirmation: {table.title}") for table in found]
