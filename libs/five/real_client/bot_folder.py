"""Folder of the bots: our Lua files and a session's settings, linked into a Dota 2 installation as ``vscripts/bots``.

The client loads scripts only from below ``vscripts`` and follows a symbolic link there (dotaservice 0.3.9, NOTES.md;
Passerby/dota2-env, client 6933 of September 2026).
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from five.real_client.action_files import write_lua
from five.real_client.errors import ClientUnavailable

LUA = Path(__file__).with_name("lua")
MARK = "five_session.lua"  # a folder with this file is one of ours
CONTROLS = ("agent", "builtin", "idle")
TEAMS = (2, 3)  # Radiant, Dire


def write_bots(folder: Path, control: Mapping[int, str], heroes: Mapping[int, Sequence[str]],
               scripted: bool = False) -> None:
    """Write the bots' files into a new folder.

    ``control`` by team: "agent" follows action files, "builtin" is the client's own bot, "idle" stands still.
    ``heroes`` by team: names of the five heroes, such as npc_dota_hero_sniper, in the order of the players.
    ``scripted``: whether the client's own scripts buy, learn and use the courier for teams under "agent".

    Raises ValueError for another kind of control, and FileExistsError if the folder exists.
    """
    for team, kind in control.items():
        if team not in TEAMS or kind not in CONTROLS:
            raise ValueError(f"control of team {team} is {kind!r}: teams are 2 (Radiant) and 3 (Dire), kinds "
                             f"{', '.join(CONTROLS)}")
    folder.mkdir(parents=True)
    for source in sorted(LUA.glob("*.lua")):
        shutil.copyfile(source, folder / source.name)
    write_lua(folder / MARK, {"control": {team: control[team] for team in TEAMS},
                              "heroes": {team: list(heroes[team]) for team in TEAMS},
                              "scripted": {team: control[team] == "builtin" or (
                                  scripted and control[team] == "agent") for team in TEAMS}})


def link_bots(vscripts: Path, folder: Path) -> Path:
    """Link ``vscripts``/bots to the folder, replacing a link of an earlier session. Return the link.

    Raises ClientUnavailable if something else is there.
    """
    link = vscripts / "bots"
    if link.is_symlink():
        if link.exists() and not (link / MARK).is_file():
            raise ClientUnavailable(f"{link} is a link to {link.readlink()}, which five did not make: remove the "
                                    "link to play with five's bots")
        link.unlink()
    elif link.exists():
        raise ClientUnavailable(f"{link} holds other bots: move it away to play with five's bots")
    link.symlink_to(folder.resolve(), target_is_directory=True)
    return link


def unlink_bots(vscripts: Path, folder: Path) -> None:
    """Remove the link to the folder, unless another session has replaced it."""
    link = vscripts / "bots"
    if link.is_symlink() and link.readlink() == folder.resolve():
        link.unlink()
