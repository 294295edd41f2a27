"""Fake of a dedicated Dota 2 client: the simulator behind the same options, sockets, files and log.

Started as a program with the real one's options, in an installation's folder ``game``, it runs the linked Lua bots in
a Lua 5.1 interpreter and plays as fast as it can. ``fake.json`` there is a `FakeSettings`.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import IO

from dota.config import GameConfig
from dota.play import InteractiveGame
from dota.vec_game import BOTS, Controller, Winner
from five.protos.valve.bot_world_state_pb2 import CMsgBotWorldState
from tests.real_client.bot_vm import read_lua
from tests.real_client.fake_faults import CALLS, SETTINGS, FakeSettings
from tests.real_client.fake_socket import CUT_BYTES, WorldStatePort
from tests.real_client.fake_team import TEAM_PLAYERS, FakeTeam

PREFIX = "npc_dota_hero_"
CONNECT_SECONDS = 30.0


class FakeClient:
    """The program's state."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.ticks = options.frames
        self.settings = FakeSettings.model_validate_json((folder / SETTINGS).read_text())
        self._log_path = Path(options.log)
        self._log = self._log_path.open("w")
        vscripts = folder / "dota/scripts/vscripts"
        config = GameConfig.model_validate_json(self.settings.game)
        heroes = config.heroes_per_team
        session = read_lua(vscripts / "bots/five_session.lua")
        line_up = [[name.removeprefix(PREFIX) for name in session["heroes"][team][:heroes]] for team in (2, 3)]
        self.game = InteractiveGame(config, self.settings.seed, line_up)
        self._calls: IO[str] = (folder / CALLS).open("w")
        self.teams = [FakeTeam(self.game, team, vscripts, self.log, self._calls) for team in (2, 3)]
        for team in self.teams:
            self._pick(team, session["heroes"][team.team])
        self.ports = [WorldStatePort(options.radiant), WorldStatePort(options.dire)]
        self._numbers = [0, 0]

    def _pick(self, team: FakeTeam, wanted: list[str]) -> None:
        """Run the hero selection and check what it picks."""
        first = (team.team - 2) * TEAM_PLAYERS
        picked: dict[int, str] = {}
        team.vm.define(GetTeamPlayers=lambda _: list(range(first, first + TEAM_PLAYERS)), IsPlayerBot=lambda _: True,
                       IsPlayerInHeroSelectionControl=lambda _: True,
                       SelectHero=lambda player, hero: picked.update({int(player): hero}))
        team.vm.load("hero_selection")["Think"]()
        assert picked == {first + place: hero for place, hero in enumerate(wanted)}, picked

    def log(self, text: str) -> None:
        """Write a line of the console log."""
        self._log.write(f"{time.strftime('%m/%d %H:%M:%S')} {text}\n")
        self._log.flush()

    def play(self) -> None:
        """Play the game to its end."""
        for number, team in enumerate(self.teams):
            team.see(CMsgBotWorldState.FromString(self.game.world_state(number)))
            team.take_heroes()
            self.game.controllers[number] = Controller.POLICY if team.controls else BOTS[self.settings.bot]
        ends = time.monotonic() + CONNECT_SECONDS
        while not all(port.is_connected for port, team in zip(self.ports, self.teams, strict=True) if team.controls):
            assert time.monotonic() < ends, "nobody connected"
            time.sleep(0.01)
        tick = 0
        while self.game.winner_now is Winner.RUNNING and self.game.time < self.settings.seconds:
            for number, team in enumerate(self.teams):
                if tick % self.ticks == 0:
                    self._send(number, team)
                team.think()
            if self.game.frames_left == 0:
                self.game.begin()
            self.game.frame()
            tick += 1
        loser = "goodguys" if self.game.winner_now is Winner.DIRE else "badguys"
        self._calls.close()  # the session ends this program once it has read the next line
        self.log(f"Building: npc_dota_{loser}_fort destroyed at {self.game.time:.1f}")
        time.sleep(0.5)

    def _send(self, number: int, team: FakeTeam) -> None:
        """Send a team's world state, with the faults that are due."""
        payload = self.game.world_state(number)
        state = CMsgBotWorldState.FromString(payload)
        team.see(state)
        port, settings = self.ports[number], self.settings
        if not port.is_connected:
            return
        count, self._numbers[number] = self._numbers[number], self._numbers[number] + 1
        if settings.die == count:
            self.log("FATAL ERROR: injected")
            sys.exit(3)
        if count in settings.shorten_log:
            self._log.seek(0)
            self._log.truncate()
        if count in settings.rename_log:
            self._log_path.rename(self._log_path.with_name(f"console.{count}.{number}.log"))
            self._log.close()
            self._log = self._log_path.open("w")
        if count == settings.hide:
            team.moved.clear()
        if settings.hide is not None and count >= settings.hide:
            payload = _without_heroes(state, team)
        if count in settings.lose or (settings.silent is not None and count > settings.silent):
            return
        if count in settings.disconnect:
            port.send_half(payload)
            ends = time.monotonic() + CONNECT_SECONDS
            while not port.is_connected and time.monotonic() < ends:
                time.sleep(0.01)
        elif count in settings.cut:
            port.send(_enlarged(state), cut=True)
        else:
            port.send(payload)


def _without_heroes(state: CMsgBotWorldState, team: FakeTeam) -> bytes:
    """Return a world state without the team's living heroes that have not moved."""
    alive = {p.player_id for p in state.players if p.is_alive}
    hidden = alive - team.moved
    kept = [unit for unit in state.units if not (
        unit.unit_type == CMsgBotWorldState.HERO and unit.team_id == team.team and unit.player_id in hidden)]
    shown = CMsgBotWorldState()
    shown.CopyFrom(state)
    del shown.units[:]
    shown.units.extend(kept)
    return shown.SerializeToString()


def _enlarged(state: CMsgBotWorldState) -> bytes:
    """Return a world state of more than 65,536 bytes whose last units and events are beyond that."""
    large = CMsgBotWorldState()
    large.CopyFrom(state)
    units = list(large.units)
    del large.units[:]
    large.units.extend(units[:len(units) // 2])
    padding = CMsgBotWorldState.Unit(handle=1, unit_type=CMsgBotWorldState.WARD, name="padding" * 10)
    while large.ByteSize() < CUT_BYTES:
        large.units.extend([padding] * 99)
    large.units.extend(units[len(units) // 2:])
    return large.SerializeToString()


def parse_options(words: list[str]) -> argparse.Namespace:
    """Return the client's options that matter here; others are ignored, as the real one does."""
    parser = argparse.ArgumentParser(prefix_chars="-", allow_abbrev=False)
    parser.add_argument("-dedicated", action="store_true", required=True)
    parser.add_argument("-nowatchdog", action="store_true", required=True)
    parser.add_argument("-botworldstatetosocket_frames", dest="frames", type=int, required=True)
    parser.add_argument("-botworldstatetosocket_radiant", dest="radiant", type=int, required=True)
    parser.add_argument("-botworldstatetosocket_dire", dest="dire", type=int, required=True)
    parser.add_argument("-con_logfile", dest="log", required=True)
    return parser.parse_known_args(words)[0]


if __name__ == "__main__":
    client = FakeClient(parse_options(sys.argv[1:]), Path.cwd())
    client.play()
