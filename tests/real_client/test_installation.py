"""An installation is found below the given folder, and what is missing is named with its remedy."""

from pathlib import Path

import pytest

from five.real_client.errors import ClientUnavailable
from five.real_client.installation import find_installation, parse_inf


def install(library: Path) -> Path:
    """Write the files that are checked of an installation into a Steam library; return the game's folder."""
    game = library / "steamapps/common/dota 2 beta/game"
    (game / "dota/scripts").mkdir(parents=True)
    (game / "dota/pak01_dir.vpk").write_bytes(b"")
    (game / "dota/steam.inf").write_text("ClientVersion=6941\r\nServerVersion=6941\nVersionDate=Oct 01 2026\n")
    for name in ("bin/linuxsteamrt64/dota2", "dota.sh"):
        (game / name).parent.mkdir(parents=True, exist_ok=True)
        (game / name).write_text("#!/bin/sh\n")
        (game / name).chmod(0o755)
    return game


@pytest.mark.parametrize("below", ["", "steamapps", "steamapps/common", "steamapps/common/dota 2 beta",
                                   "steamapps/common/dota 2 beta/game"])
def test_the_game_is_found_from_any_folder_above_it(tmp_path: Path, below: str) -> None:
    game = install(tmp_path)
    found = find_installation(tmp_path / below, "linux")
    assert found.game == game.resolve() and found.executable == game.resolve() / "bin/linuxsteamrt64/dota2"
    assert (found.version, found.date) == ("6941", "Oct 01 2026")
    assert found.vscripts == game.resolve() / "dota/scripts/vscripts"


def test_linux_starts_the_program_with_its_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    game = install(tmp_path).resolve()
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/lib")
    assert find_installation(tmp_path, "linux").environment() == {
        "LD_LIBRARY_PATH": f"{game}/bin/linuxsteamrt64:/opt/lib", "ENABLE_PATHMATCH": "1"}
    mac = find_installation(tmp_path, "darwin")
    assert mac.executable == game / "dota.sh" and mac.environment() == {}


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    game = install(tmp_path)
    cases = {
        "dota/pak01_dir.vpk": "content is not installed; SteamCMD needs an account",
        "dota/steam.inf": "steam.inf cannot be read",
        "bin/linuxsteamrt64/dota2": "is missing: install Dota 2 for this system",
    }
    for name, words in cases.items():
        data = (game / name).read_bytes()
        (game / name).unlink()
        with pytest.raises(ClientUnavailable, match=words):
            find_installation(tmp_path, "linux")
        (game / name).write_bytes(data)
        (game / name).chmod(0o755)
    find_installation(tmp_path, "linux")
    (game / "bin/linuxsteamrt64/dota2").chmod(0o644)
    with pytest.raises(ClientUnavailable, match=r"is not executable: chmod \+x"):
        find_installation(tmp_path, "linux")


def test_other_folders_and_systems_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ClientUnavailable, match="nowhere is not a folder"):
        find_installation(tmp_path / "nowhere")
    with pytest.raises(ClientUnavailable, match="has no Dota 2"):
        find_installation(tmp_path)
    install(tmp_path)
    with pytest.raises(ClientUnavailable, match="platform 'win32': five starts the client only on linux and darwin"):
        find_installation(tmp_path, "win32")


def test_lines_of_steam_inf_are_read() -> None:
    assert parse_inf(b"\xff\nClientVersion=1\r\n Product = x\nVersionDate=Oct 01 2026 \nPatchVersion=") == {
        "ClientVersion": "1", "VersionDate": "Oct 01 2026", "PatchVersion": ""}
