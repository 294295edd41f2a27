"""Games that have a name: what the project's presets play and reward, for the game alone.

``data/presets.json`` is made of the presets of a run (configs/*.yaml) by ``python -m dota.presets FOLDER`` and kept
current by a test.
"""

import difflib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dota.config import GameConfig, RewardConfig

FILE = Path(__file__).parent / "data" / "presets.json"


class Preset(NamedTuple):
    """What is played and rewarded. ``team_spirit`` is the share of a reward that is the team's mean, at the start of a
    run."""

    game: GameConfig
    rewards: RewardConfig
    team_spirit: float


def names() -> list[str]:
    """The presets that there are."""
    return sorted(json.loads(FILE.read_text()))


def load(name: str, **changes: Any) -> Preset:
    """A preset by name; ``changes`` are values of its game that differ, as ``max_game_seconds=300``.

    Raises ValueError for a name that there is not, with the nearest, and for a value that is wrong.
    """
    all_of_them = json.loads(FILE.read_text())
    if name not in all_of_them:
        near = difflib.get_close_matches(name, all_of_them, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"there is no preset {name!r}, there are {', '.join(sorted(all_of_them))}{hint}")
    found = all_of_them[name]
    return Preset(GameConfig.model_validate({**found["game"], **changes}),
                  RewardConfig.model_validate(found["rewards"]), float(found["team_spirit"]))


def of_run(run: Mapping[str, Any], default_spirit: float) -> dict[str, Any]:
    """What the file holds of one run's preset."""
    spirit = run.get("schedules", {}).get("team_spirit", {}).get("initial", default_spirit)
    return {"game": run.get("game", {}), "rewards": run.get("rewards", {}), "team_spirit": spirit}


def main(folder: str, default_spirit: float = 0.3) -> None:
    """Writes the file from a folder of runs' presets."""
    import yaml

    made = {path.stem: of_run(yaml.safe_load(path.read_text()), default_spirit)
            for path in sorted(Path(folder).glob("*.yaml"))}
    beside = FILE.with_suffix(".new")
    beside.write_text(json.dumps(made, indent=1) + "\n")
    beside.replace(FILE)


if __name__ == "__main__":
    main(sys.argv[1])
