"""Cameras of the evaluator's games, for recordings and live viewers."""

import logging
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dota.config import GameConfig, RewardConfig
from dota.rewards import signal_weights, time_weights
from dota.spectator.camera import Camera
from dota.spectator.policy_debug import building_slots, record_policy_outputs
from dota.spectator.recording import RecordingWriter
from dota.vec_game import VecGame
from five.clients.inference import ActResult
from five.services.evaluator.matches import Pairing
from rapid.live_source import LiveSource

log = logging.getLogger(__name__)
Array = npt.NDArray[Any]
FIRST_STEPS = 6  # of the first chunk of a live game


class Cameras:
    """Cameras of one vector of games. ``rewards`` defines the shown rewards; ``source`` None disables live broadcasts.
    """

    def __init__(self, games: VecGame, run: str, rewards: RewardConfig, source: LiveSource | None = None) -> None:
        self._games = games
        self._run = run
        self._rewards = rewards
        self._weights = signal_weights(rewards)
        self._buildings = building_slots(games.layout)
        self._source = source
        self._pairings: dict[int, tuple[str, Pairing, float]] = {}  # by place: id, who, since when
        self._films: dict[int, RecordingWriter] = {}
        self._live: dict[int, Camera] = {}

    def began(self, place: int, pairing: Pairing, game: str) -> None:
        """Handle the start or restart of a game in a slot."""
        self.drop([place])
        self._pairings[place] = game, pairing, time.monotonic()

    def film(self, place: int, path: Path) -> None:
        """Record the game that has just begun in a slot to a file. A write error costs the recording, not the game."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            film = self._films[place] = RecordingWriter(path, self._config(place), self._about(place))
            film.camera.record(self._games, place)
        except OSError as error:
            self._lose(place, error)

    def wants(self, place: int) -> bool:
        """Return whether a slot is recorded or watched; start the broadcast for a new viewer."""
        known = self._pairings.get(place)
        if self._source is not None and known is not None:
            wanted = self._source.wants(known[0])
            if wanted and place not in self._live:
                self._show(place, known[0])
            elif not wanted and place in self._live:
                self._live.pop(place).end()
        return place in self._films or place in self._live

    def think(self, places: Array, sides: Array, asked: npt.NDArray[np.bool_], answer: ActResult) -> None:
        """Record the policies' outputs for the last frames. Rows of the answer are ``places`` and ``sides``; debug
        outputs were ``asked`` for some."""
        for thought, row in enumerate(np.flatnonzero(asked).tolist()):
            if not answer.policy_debug:
                return
            place, side = int(places[row]), int(sides[row])
            policy_debug = {name: array[thought] for name, array in answer.policy_debug.items()}
            for camera in self._cameras(place):
                try:
                    self._think(camera, place, side, row, answer, policy_debug)
                except Exception as error:  # costs what is shown, not the rating
                    self._lose(place, error)

    def look(self, places: Collection[int]) -> None:
        """Record these slots after a step."""
        for place in places:
            for camera in self._cameras(place):
                weights = self._weights * time_weights(self._games.game_time[place], self._rewards)
                try:
                    camera.record(self._games, place)
                    for side in range(2):
                        camera.record_rewards(side, self._games.signals[place, side] * weights)
                except Exception as error:
                    self._lose(place, error)

    def ended(self, place: int) -> bool:
        """End a slot's recording; return whether it is complete and stored."""
        if place in self._live:
            self._live.pop(place).end()
            assert self._source is not None
            self._source.put("end", self._pairings[place][0], facts={"winner": int(self._games.winner[place])})
        film = self._films.pop(place, None)
        if film is None:
            return False
        try:
            film.close()
            return True
        except OSError as error:
            log.warning("a game is not kept for watching: %s", error)
            return False

    def drop(self, places: Collection[int] | None = None) -> None:
        """Discard the games in these slots (all of them by default)."""
        for place in list(self._pairings if places is None else places):
            if (film := self._films.pop(place, None)) is not None:
                film.drop()
            if (camera := self._live.pop(place, None)) is not None and self._source is not None:
                camera.end()
                self._source.put("end", self._pairings[place][0])
            self._pairings.pop(place, None)

    def facts(self, place: int) -> dict[str, Any]:
        """Return the list entry of a slot's ended game."""
        kills = self._games.stats[place, :, :, 2].sum(axis=1)
        return {**self._about(place), "seconds": round(float(self._games.game_time[place]), 1), "at": time.time(),
                "winner": int(self._games.winner[place]) - 1, "kills": [int(k) for k in kills],
                "mode": self._config(place).mode, "patch": self._config(place).patch}

    def games(self) -> list[dict[str, Any]]:
        """Return the games in progress for a list."""
        found = []
        for place, (game, _, since) in self._pairings.items():
            stats = self._games.stats[place]
            found.append({"game": game, **self._about(place), "time": round(float(self._games.game_time[place]), 1),
                          "kills": [int(k) for k in stats[:, :, 2].sum(axis=1)],
                          "net_worth": [int(k) for k in stats[:, :, 5].sum(axis=1)],
                          "wall_seconds": round(time.monotonic() - since, 1)})
        return found

    def _config(self, place: int) -> GameConfig:
        return self._games.variants[self._games.variant(place)]

    def _about(self, place: int) -> dict[str, Any]:
        _, pairing, _ = self._pairings[place]
        players = [pairing.agent.name, pairing.opponent.name]
        return {"run": self._run, "kind": "rated" if pairing.game else "match",
                "players": players if pairing.side == 0 else players[::-1], "seed": str(self._games.seed(place))}

    def _cameras(self, place: int) -> list[Camera]:
        found = [self._films[place].camera] if place in self._films else []
        return [*found, self._live[place]] if place in self._live else found

    def _show(self, place: int, game: str) -> None:
        source = self._source
        assert source is not None
        camera = Camera(self._config(place), self._about(place), lambda chunk, facts: source.put(
            "chunk", game, chunk, {"time": round(facts.time, 2), "steps": facts.steps}), FIRST_STEPS)
        self._live[place] = camera
        source.put("header", game, camera.packed_header())
        camera.record(self._games, place)

    def _lose(self, place: int, error: Exception) -> None:
        log.warning("a game is not recorded for watching: %s", error, exc_info=not isinstance(error, OSError))
        if place in self._live and self._source is not None:
            self._live.pop(place)
            self._source.put("end", self._pairings[place][0])
        film = self._films.pop(place, None)
        if film is not None:
            film.drop()

    def _think(self, camera: Camera, place: int, side: int, row: int, answer: ActResult,
               policy_debug: Mapping[str, Array]) -> None:
        record_policy_outputs(camera, side, policy_debug, values=answer.values[row], version=int(answer.versions[row]),
                      actions=answer.actions[row], available=self._games.obs["available"][place, side],
                      units=self._games.slot_units(place, side), buildings=self._buildings)
