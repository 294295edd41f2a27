"""TensorBoard event files of a run, written with its report."""

from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from rapid.store.series import Series

GROUPS = {"versions": "learning", "ratings": "rating", "games": "games"}


class TensorBoardWriter:
    """Writer of a run's new records. The step is the version; for games it is the game's number."""

    def __init__(self, folder: Path, series: Series) -> None:
        self._writer = SummaryWriter(str(folder))
        self._series = series
        self._after = dict.fromkeys(GROUPS, "-")
        self._games = 0

    def update(self) -> None:
        """Write the records that were appended since the last call."""
        for kind, group in GROUPS.items():
            for record in self._series.read(kind, self._after[kind]):
                self._after[kind] = record.id
                step = record.values.get("version", 0)
                if kind == "games":
                    step = self._games
                    self._games += 1
                self._write(group, record.values, step, record.at)
        self._writer.flush()

    def _write(self, group: str, values: dict[str, Any], step: int, at: float) -> None:
        for name, value in values.items():
            if isinstance(value, dict):
                self._write(f"{group}/{name}", value, step, at)
            elif isinstance(value, int | float) and not isinstance(value, bool):
                self._writer.add_scalar(f"{group}/{name}", value, step, walltime=at)

    def close(self) -> None:
        """Close the files."""
        self._writer.close()
