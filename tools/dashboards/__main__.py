"""``python -m tools.dashboards [FOLDER]`` writes every dashboard; by default to charts/dashboards."""

import sys
from pathlib import Path

from tools.dashboards.catalogue import BOARDS

FOLDER = Path(__file__).resolve().parents[2] / "charts" / "dashboards"


def main(arguments: list[str]) -> None:
    """Write the dashboards and remove files of dashboards that no longer exist."""
    folder = Path(arguments[0]) if arguments else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for board in BOARDS:
        (folder / f"{board.name}.json").write_text(board.json(), encoding="utf-8")
    for path in folder.glob("*.json"):
        if path.stem not in {board.name for board in BOARDS}:
            path.unlink()


if __name__ == "__main__":
    main(sys.argv[1:])
