"""Check of a Dota 2 installation.

Layout: ``steamapps/common/dota 2 beta/game`` of a Steam library, with ``dota/steam.inf`` and ``dota/pak01_dir.vpk``.
Linux: ``dota.sh`` refuses to start outside Steam's runtime, so the program itself is started, with the variables that
dota.sh would set (Passerby/dota2-env, client 6941 of September 2026, Ubuntu 24.04). macOS: dota.sh starts.
"""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from five.real_client.errors import ClientUnavailable

FOLDERS = (".", "game", "dota 2 beta/game", "common/dota 2 beta/game", "steamapps/common/dota 2 beta/game")
EXECUTABLES = {"linux": "bin/linuxsteamrt64/dota2", "darwin": "dota.sh"}
_LARGEST_INF = 1 << 16
_INF_LINE = re.compile(r"^[ \t]*(\w{1,64})=([^\r\n]{0,256})", re.MULTILINE)


@dataclass(frozen=True)
class Installation:
    """Installed client. ``game`` is the folder that contains ``dota``; ``version`` and ``date`` those of steam.inf."""

    game: Path
    executable: Path
    version: str
    date: str

    @property
    def vscripts(self) -> Path:
        """Return the folder from which the client loads scripts."""
        return self.game / "dota/scripts/vscripts"

    def environment(self) -> dict[str, str]:
        """Return the variables that the program needs in addition to this process's."""
        if self.executable.name != "dota2":
            return {}
        libraries = [str(self.executable.parent), os.environ.get("LD_LIBRARY_PATH", "")]
        return {"LD_LIBRARY_PATH": ":".join(filter(None, libraries)), "ENABLE_PATHMATCH": "1"}


def find_installation(path: Path, platform: str = sys.platform) -> Installation:
    """Return the installation at a path: a Steam library, the game's folder or a folder between them.

    Raises ClientUnavailable if anything that a dedicated client needs is missing.
    """
    if not path.is_dir():
        raise ClientUnavailable(f"{path} is not a folder: give the folder \"dota 2 beta\" of a Steam library")
    name = EXECUTABLES.get(platform)
    if name is None:
        raise ClientUnavailable(f"platform {platform!r}: five starts the client only on {' and '.join(EXECUTABLES)}")
    game = next((path / folder for folder in FOLDERS if (path / folder / "dota").is_dir()), None)
    if game is None:
        raise ClientUnavailable(f"{path} has no Dota 2: give the folder \"dota 2 beta\" of a Steam library, which "
                                "contains game/dota")
    game = game.resolve()
    executable = game / name
    if not executable.is_file():
        raise ClientUnavailable(f"{executable} is missing: install Dota 2 for this system with Steam or SteamCMD (app "
                                "570)")
    if not os.access(executable, os.X_OK):
        raise ClientUnavailable(f"{executable} is not executable: chmod +x \"{executable}\"")
    if not (game / "dota/pak01_dir.vpk").is_file():
        raise ClientUnavailable(f"{game}/dota/pak01_dir.vpk is missing: the game's content is not installed; SteamCMD "
                                "needs an account that owns Dota 2 for it, not +login anonymous")
    facts = _read_inf(game / "dota/steam.inf")
    scripts = game / "dota/scripts"
    if not os.access(scripts if scripts.is_dir() else game / "dota", os.W_OK):
        raise ClientUnavailable(f"{scripts} cannot be written, and the bots are linked into it: run five as the "
                                "installation's owner")
    return Installation(game, executable, facts.get("ClientVersion", "unknown"), facts.get("VersionDate", "unknown"))


def _read_inf(path: Path) -> Mapping[str, str]:
    """Return the version facts of a steam.inf. Raises ClientUnavailable if it cannot be read."""
    try:
        with path.open("rb") as file:
            return parse_inf(file.read(_LARGEST_INF))
    except OSError as error:
        raise ClientUnavailable(f"{path} cannot be read ({error.strerror}): verify the game's files with Steam"
                                ) from None


def parse_inf(text: bytes) -> dict[str, str]:
    """Return the keys and values of a steam.inf, such as ClientVersion and VersionDate. Other lines are ignored."""
    return {key: value.strip() for key, value in _INF_LINE.findall(text.decode("utf-8", "replace"))}
