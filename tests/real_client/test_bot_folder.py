"""The bots' folder is linked into the installation, and nothing of others is replaced."""

from pathlib import Path

import pytest

from five.real_client.bot_folder import MARK, link_bots, unlink_bots, write_bots
from five.real_client.errors import ClientUnavailable
from tests.real_client.bot_vm import BotVm
from tests.real_client.recording_api import HEROES, RecordingApi

HEROES_OF = {2: HEROES, 3: HEROES[::-1]}


def new_bots(folder: Path, radiant: str = "agent", dire: str = "builtin", scripted: bool = False) -> Path:
    write_bots(folder, {2: radiant, 3: dire}, HEROES_OF, scripted)
    return folder


@pytest.fixture
def vscripts(tmp_path: Path) -> Path:
    folder = tmp_path / "game/dota/scripts/vscripts"
    folder.mkdir(parents=True)
    return folder


def test_a_session_replaces_the_link_of_an_earlier_one(tmp_path: Path, vscripts: Path) -> None:
    first, second = new_bots(tmp_path / "first"), new_bots(tmp_path / "second")
    link_bots(vscripts, first)
    assert (link_bots(vscripts, second) / MARK).is_file() and (vscripts / "bots").readlink() == second.resolve()
    unlink_bots(vscripts, first)  # no longer the first one's
    assert (vscripts / "bots").is_symlink()
    unlink_bots(vscripts, second)
    assert not (vscripts / "bots").is_symlink()
    unlink_bots(vscripts, second)


def test_a_dangling_link_is_replaced(tmp_path: Path, vscripts: Path) -> None:
    (vscripts / "bots").symlink_to(tmp_path / "gone")
    link_bots(vscripts, new_bots(tmp_path / "session"))
    assert (vscripts / "bots" / MARK).is_file()


def test_bots_of_others_stay(tmp_path: Path, vscripts: Path) -> None:
    session = new_bots(tmp_path / "session")
    (vscripts / "bots").mkdir()
    with pytest.raises(ClientUnavailable, match="holds other bots: move it away"):
        link_bots(vscripts, session)
    (vscripts / "bots").rmdir()
    (tmp_path / "theirs").mkdir()
    (vscripts / "bots").symlink_to(tmp_path / "theirs")
    with pytest.raises(ClientUnavailable, match="which five did not make: remove the link"):
        link_bots(vscripts, session)
    unlink_bots(vscripts, session)
    assert (vscripts / "bots").readlink() == tmp_path / "theirs"


def test_another_kind_of_control_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="control of team 2 is 'person'"):
        new_bots(tmp_path / "session", "person")
    with pytest.raises(ValueError, match="control of team 1"):
        write_bots(tmp_path / "session", {1: "agent"}, HEROES_OF)


GOODS = {"ItemPurchaseThink", "AbilityLevelUpThink", "CourierUsageThink"}
USES = {"AbilityUsageThink", "ItemUsageThink", "BuybackUsageThink"}


@pytest.mark.parametrize(("control", "scripted", "replaced"), [
    ("agent", False, GOODS | USES), ("agent", True, USES), ("idle", True, GOODS | USES), ("builtin", False, set())])
def test_functions_of_the_clients_bots_are_replaced(tmp_path: Path, control: str, scripted: bool,
                                                    replaced: set[str]) -> None:
    new_bots(tmp_path / "bots", control, scripted=scripted)
    vm = BotVm(tmp_path, RecordingApi())
    assert vm.load("item_purchase_generic").keys() | vm.load("ability_item_usage_generic").keys() == replaced


def test_bots_pick_the_listed_heroes_in_the_order_of_players(tmp_path: Path) -> None:
    new_bots(tmp_path / "bots")
    vm = BotVm(tmp_path, RecordingApi())
    picked: list[tuple[int, str]] = []
    vm.define(GetTeamPlayers=lambda team: [0, 1, 2, 3, 4], IsPlayerBot=lambda player: player != 3,
              IsPlayerInHeroSelectionControl=lambda player: player != 1,
              SelectHero=lambda player, hero: picked.append((int(player), hero)))
    vm.load("hero_selection")["Think"]()
    assert picked == [(0, HEROES[0]), (2, HEROES[2]), (4, HEROES[4])]
