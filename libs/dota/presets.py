"""Named game configurations of the project's presets, for using the game alone.

``python -m dota.presets FOLDER`` generates ``data/presets.json`` from the run presets (configs/*.yaml). A test checks
that it is current.
"""

import difflib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dota.config import GameConfig, RewardConfig

FILE = Path(__file__).parent / "data" / "presets.json"
DEFAULT_TEAM_SPIRIT = 0.3  # Berner et al. 2019, table 2: initial value


class Preset(NamedTuple):
    """Game and rewards of a preset. ``team_spirit`` is the team mean's share of a reward at the start of a run."""

    game: GameConfig
    rewards: RewardConfig
    team_spirit: float


def names() -> list[str]:
    """Return the names of all presets."""
    return sorted(json.loads(FILE.read_text(encoding="utf-8")))


def load(name: str, **changes: Any) -> Preset:
    """Return a preset by name; ``changes`` override values of its game as in ``with_changes``, for example
    ``max_game_seconds=300``.

    Raises ValueError for an unknown name (with the nearest one) or an invalid value.
    """
    entries = json.loads(FILE.read_text(encoding="utf-8"))
    if name not in entries:
        near = difflib.get_close_matches(name, entries, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown preset {name!r}; known: {', '.join(sorted(entries))}{hint}")
    found = entries[name]
    return Preset(GameConfig.model_validate(with_changes(found["game"], changes)),
                  RewardConfig.model_validate(found["rewards"]), float(found["team_spirit"]))


def with_changes(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``values`` with ``changes``. A mapping changes values of its section: the others stay as they are."""
    def changed(name: str, change: Any) -> Any:
        section = values.get(name)
        return with_changes(section, change) if isinstance(section, Mapping) and isinstance(change, Mapping) else change

    return {**values, **{name: changed(name, change) for name, change in changes.items()}}


def preset_entry(run: Mapping[str, Any], default_spirit: float) -> dict[str, Any]:
    """Return the file's entry for one run preset."""
    spirit = run.get("schedules", {}).get("team_spirit", {}).get("initial", default_spirit)
    return {"game": run.get("game", {}), "rewards": run.get("rewards", {}), "team_spirit": spirit}


def main(folder: str, default_spirit: float = DEFAULT_TEAM_SPIRIT) -> None:
    """Write the file from a folder of run presets."""
    import yaml

    entries = {path.stem: preset_entry(yaml.safe_load(path.read_text(encoding="utf-8")), default_spirit)
               for path in sorted(Path(folder).glob("*.yaml"))}
    temporary = FILE.with_suffix(".new")
    temporary.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    temporary.replace(FILE)


if __name__ == "__main__":
    main(sys.argv[1])
