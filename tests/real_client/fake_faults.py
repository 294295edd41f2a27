"""Settings of the fake client: the game, and faults that it injects."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

SETTINGS = "fake.json"  # beside the program's folder `bin`, as in an installation `game/fake.json`
CALLS = "calls.jsonl"


class FakeSettings(BaseModel):
    """Game and faults. Faults name world states by their number, from 0, of each team that is connected.

    Attributes:
        game: `GameConfig` as JSON.
        bot: bot of the game that plays heroes which no Lua bot controls.
        seconds: game seconds after which Radiant wins, for short games.
        cut: world states that exceed 65,536 bytes and are cut there.
        disconnect: world states in the middle of which the connection ends.
        lose: world states that are not sent.
        hide: a world state from which on each living hero is missing until it moves.
        shorten_log: world states at which the log is emptied.
        rename_log: world states at which the log is renamed and goes on in a new file.
        die: a world state at which the program ends.
        silent: a world state after which no other is sent.
    """

    model_config = ConfigDict(extra="forbid")
    game: str = "{}"
    seed: int = 1
    bot: str = "scripted-easy"
    seconds: float = 1e9
    cut: list[int] = []
    disconnect: list[int] = []
    lose: list[int] = []
    hide: int | None = None
    shorten_log: list[int] = []
    rename_log: list[int] = []
    die: int | None = None
    silent: int | None = None


@dataclass(frozen=True)
class FakeInstallation:
    """Installation whose program is the fake client."""

    game: Path

    def write(self, settings: FakeSettings) -> None:
        """Set what the next start plays."""
        (self.game / SETTINGS).write_text(settings.model_dump_json())
        (self.game / CALLS).unlink(missing_ok=True)

    @property
    def calls(self) -> Path:
        """Return the file that lists the bots' calls of the API, one a line."""
        return self.game / CALLS
