"""One recording of each version that is rated."""

import logging
from collections.abc import Callable
from pathlib import Path

from dota.replay import Replay

log = logging.getLogger(__name__)


class Recorder:
    """Records the first rated game of each version into ``folder``, as PLAYER.replay, and keeps the newest ``keep``.

    ``record`` begins the recording of the game at a place, ``final_hash`` is the state that it ended in.
    """

    def __init__(self, record: Callable[[int], Replay], final_hash: Callable[[int], int], folder: Path, keep: int
                 ) -> None:
        self._record = record
        self._hash = final_hash
        self._folder = folder
        self._keep = keep
        self._running: dict[int, tuple[str, Replay]] = {}  # by place

    def began(self, place: int, player: str) -> None:
        """A rated game of a player begins at a place, or begins again."""
        again = self._running.get(place, ("", None))[0] == player
        others = any(name == player for name, _ in self._running.values())
        if again or not (others or self._path(player).exists()):
            self._running[place] = (player, self._record(place))

    def ended(self, place: int) -> None:
        """The game at a place has ended. A folder that cannot be written costs the recording, not the rating."""
        if place not in self._running:
            return
        player, replay = self._running.pop(place)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            replay.save(self._path(player), self._hash(place))
            kept = sorted(self._folder.glob("version-*.replay"), key=lambda p: p.stat().st_mtime)
            for path in kept[:-self._keep]:
                if path.stem.removeprefix("version-").isdigit():  # matches on request have longer names, and stay
                    path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("a game of %s is not kept: %s", player, error)

    def drop(self) -> None:
        """The games under way are lost."""
        self._running.clear()

    def _path(self, player: str) -> Path:
        return self._folder / f"{player}.replay"
