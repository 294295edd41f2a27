"""`five client` checks an installation and says what does not work."""

from pathlib import Path

import pytest

from dota.config import GameConfig, evaluation_game
from five.cli.client import line_up
from five.cli.main import main
from five.packed_agents.folder import find_agent
from five.real_client.client_process import ClientOptions
from tests.real_client.fake_faults import FakeInstallation, FakeSettings
from tests.real_client.fake_installation import free_ports_options, install_fake
from tests.real_client.test_check import FIVE

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def fake(tmp_path: Path) -> FakeInstallation:
    return install_fake(tmp_path / "steam")


@pytest.fixture
def client_options() -> ClientOptions:
    return free_ports_options()


def client(fake: FakeInstallation, options: ClientOptions, *more: str, seconds: int = 3) -> int:
    return main(["client", "--dota", str(fake.game), "--seconds", str(seconds), "--ports", *map(str, options.ports),
                 *more])


def test_a_sound_client_passes(fake: FakeInstallation, client_options: ClientOptions, capsys: Captured, tmp_path: Path,
                               monkeypatch: pytest.MonkeyPatch) -> None:
    fake.write(FakeSettings(game=FIVE))
    monkeypatch.chdir(tmp_path)
    for seconds in (3, 20):  # for longer if three are too short on a busy machine
        files = f"files-{seconds}"  # not in the folder where the client runs
        status = client(fake, client_options, "--files", files, seconds=seconds)
        printed = capsys.readouterr()
        if status == 0:
            break
    assert status == 0, printed.err
    lines = printed.out.splitlines()
    assert lines[0] == f"client 6941 of Oct 01 2026 in {fake.game.resolve()}"
    assert lines[-1].endswith("a policy can play") and "world states in" in lines[-1]
    assert "FIVE" in (tmp_path / files / "bots/console.log").read_text()
    assert client(fake, client_options, "--files", str(tmp_path / files)) == 2
    assert "exists, perhaps of an earlier session: give a new folder" in capsys.readouterr().err


def test_problems_are_printed(fake: FakeInstallation, client_options: ClientOptions, capsys: Captured) -> None:
    fake.write(FakeSettings(game=FIVE, cut=[2]))
    assert client(fake, client_options) == 1
    printed = capsys.readouterr()
    assert "five client: 2 world states were cut" in printed.err and printed.out.endswith("problems above\n")


def test_a_folder_without_a_client_is_refused(tmp_path: Path, capsys: Captured) -> None:
    assert main(["client", "--dota", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"five client: {tmp_path} has no Dota 2: give the folder")


def test_a_packed_agent_plays(fake: FakeInstallation, client_options: ClientOptions, capsys: Captured) -> None:
    game = evaluation_game(find_agent("first-mid").config.game)
    fake.write(FakeSettings(game=game.model_dump_json(), seconds=10))
    assert client(fake, client_options, "--agent", "first-mid", "--side", "both") == 0
    printed = capsys.readouterr()
    assert "game 1: Radiant wins; " in printed.out and printed.out.endswith("Radiant won 1 of 1 games\n")
    assert "plays another patch and map: the result does not judge it" in printed.err


def test_a_policy_of_another_layout_starts_no_client(fake: FakeInstallation, client_options: ClientOptions,
                                                     capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = find_agent("first-mid").policy()
    monkeypatch.setattr("five.cli.client._policy", lambda arguments: (policy, GameConfig()))
    monkeypatch.setattr("five.real_client.session.Session", lambda *arguments: pytest.fail("a client was started"))
    assert client(fake, client_options, "--agent", "first-mid") == 2
    assert "five client: the policy reads layout " in capsys.readouterr().err


def test_teams_share_no_heroes_of_a_large_pool() -> None:
    names = ["axe", "lich", "lion", "nevermore", "riki", "slark", "sniper", "sven", "tidehunter", "viper", "razor"]
    game = GameConfig.model_validate({"hero_pool": names})
    heroes = line_up(game, 3)
    assert len({*heroes[2], *heroes[3]}) == 10 and heroes == line_up(game, 3) != line_up(game, 4)
    alone = line_up(find_agent("first-mid").config.game, 0)
    assert alone[2][0] == alone[3][0] == "npc_dota_hero_nevermore"
