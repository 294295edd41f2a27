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
FIRST_STEPS = 6  # length of a live game's first chunk, so that viewers soon have one


class Cameras:
    """Cameras of one vector of games, for recordings and live broadcasts.

    ``rewards`` defines the shown rewards; ``source`` None disables live broadcasts.
    """

    def __init__(self, games: VecGame, run: str, rewards: RewardConfig, source: LiveSource | None = None) -> None:
        self._games = games
        self._run = run
        self._rewards = rewards
        self._weights = signal_weights(rewards)
        self._buildings = building_slots(games.layout)
        self._source = source
        self._pairings: dict[int, tuple[str, Pairing, float]] = {}  # by slot: game id, pairing, start
        self._writers: dict[int, RecordingWriter] = {}
        self._live: dict[int, Camera] = {}

    def began(self, slot: int, pairing: Pairing, game: str) -> None:
        """Handle the start or restart of a game in a slot."""
        self.drop([slot])
        self._pairings[slot] = game, pairing, time.monotonic()

    def record_to(self, slot: int, path: Path) -> None:
        """Record the game that has just begun in a slot to a file. After a write error the game goes on unrecorded."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            writer = self._writers[slot] = RecordingWriter(path, self._config(slot), self._game_facts(slot))
            writer.camera.record(self._games, slot)
        except OSError as error:
            self._abandon_recording(slot, error)

    def wants(self, slot: int) -> bool:
        """Return whether a slot is recorded or watched; start the broadcast for a new viewer."""
        known = self._pairings.get(slot)
        if self._source is not None and known is not None:
            wanted = self._source.wants(known[0])
            if wanted and slot not in self._live:
                self._show(slot, known[0])
            elif not wanted and slot in self._live:
                self._live.pop(slot).end()
        return slot in self._writers or slot in self._live

    def record_outputs(self, slots: Array, sides: Array, has_debug: npt.NDArray[np.bool_], answer: ActResult) -> None:
        """Record the policies' outputs in the last frames. Rows of the answer belong to ``slots`` and ``sides``;
        ``has_debug`` marks those with debug outputs."""
        for debug_row, row in enumerate(np.flatnonzero(has_debug).tolist()):
            if not answer.policy_debug:
                return
            slot, side = int(slots[row]), int(sides[row])
            policy_debug = {name: array[debug_row] for name, array in answer.policy_debug.items()}
            for camera in self._cameras(slot):
                try:
                    self._record_outputs(camera, slot, side, row, answer, policy_debug)
                except Exception as error:  # an error costs the recording, not the rating
                    self._abandon(slot, camera, error)

    def record_step(self, slots: Collection[int]) -> None:
        """Record these slots after a step."""
        for slot in slots:
            for camera in self._cameras(slot):
                weights = self._weights * time_weights(self._games.game_time[slot], self._rewards)
                try:
                    camera.record(self._games, slot)
                    for side in range(2):
                        camera.record_rewards(side, self._games.signals[slot, side] * weights)
                except Exception as error:
                    self._abandon(slot, camera, error)

    def ended(self, slot: int) -> bool:
        """Handle the end of a slot's game. Return whether its recording is complete on disk. Repeating it has no
        effect."""
        if slot in self._live:
            self._live.pop(slot).end()
            assert self._source is not None
            self._source.put("end", self._pairings[slot][0], facts={"winner": int(self._games.winner[slot])})
        self._pairings.pop(slot, None)  # a slot stays empty between two ratings, and must not be listed as live
        writer = self._writers.pop(slot, None)
        if writer is None:
            return False
        try:
            writer.close()
            return True
        except OSError as error:
            log.warning("the recording of a game is not stored: %s", error)
            _discard(writer)
            return False

    def drop(self, slots: Collection[int] | None = None) -> None:
        """Discard the games in these slots (all of them by default)."""
        for slot in list(self._pairings if slots is None else slots):
            if (writer := self._writers.pop(slot, None)) is not None:
                _discard(writer)
            if (camera := self._live.pop(slot, None)) is not None and self._source is not None:
                camera.end()
                self._source.put("end", self._pairings[slot][0])
            self._pairings.pop(slot, None)

    def facts(self, slot: int) -> dict[str, Any]:
        """Return the description of a slot's ended game for the list of recordings."""
        kills = self._games.stats[slot, :, :, 2].sum(axis=1)
        return {**self._game_facts(slot), "seconds": round(float(self._games.game_time[slot]), 1), "at": time.time(),
                "winner": int(self._games.winner[slot]) - 1, "kills": [int(k) for k in kills],
                "mode": self._config(slot).mode, "patch": self._config(slot).patch}

    def games(self) -> list[dict[str, Any]]:
        """Return the descriptions of the games in progress for the list of live games."""
        found = []
        for slot, (game, _, since) in self._pairings.items():
            stats = self._games.stats[slot]
            found.append({"game": game, **self._game_facts(slot), "time": round(float(self._games.game_time[slot]), 1),
                          "kills": [int(k) for k in stats[:, :, 2].sum(axis=1)],
                          "net_worth": [int(k) for k in stats[:, :, 5].sum(axis=1)],
                          "wall_seconds": round(time.monotonic() - since, 1)})
        return found

    def _config(self, slot: int) -> GameConfig:
        return self._games.variants[self._games.variant(slot)]

    def _game_facts(self, slot: int) -> dict[str, Any]:
        _, pairing, _ = self._pairings[slot]
        players = [pairing.agent.name, pairing.opponent.name]
        return {"run": self._run, "kind": "rated" if pairing.game else "match",
                "players": players if pairing.side == 0 else players[::-1], "seed": str(self._games.seed(slot))}

    def _cameras(self, slot: int) -> list[Camera]:
        found = [self._writers[slot].camera] if slot in self._writers else []
        return [*found, self._live[slot]] if slot in self._live else found

    def _show(self, slot: int, game: str) -> None:
        source = self._source
        assert source is not None
        camera = Camera(self._config(slot), self._game_facts(slot), lambda chunk, facts: source.put(
            "chunk", game, chunk, {"time": round(facts.time, 2), "steps": facts.steps}), FIRST_STEPS)
        self._live[slot] = camera
        source.put("header", game, camera.packed_header())
        camera.record(self._games, slot)

    def _abandon(self, slot: int, camera: Camera, error: Exception) -> None:
        if camera is not self._live.get(slot):
            self._abandon_recording(slot, error)
            return
        log.warning("the live broadcast of a game is lost: %s", error, exc_info=True)
        self._live.pop(slot)
        assert self._source is not None
        self._source.put("end", self._pairings[slot][0])

    def _abandon_recording(self, slot: int, error: Exception) -> None:
        log.warning("the recording of a game is lost: %s", error, exc_info=not isinstance(error, OSError))
        writer = self._writers.pop(slot, None)
        if writer is not None:
            _discard(writer)

    def _record_outputs(self, camera: Camera, slot: int, side: int, row: int, answer: ActResult,
                        policy_debug: Mapping[str, Array]) -> None:
        record_policy_outputs(camera, side, policy_debug, values=answer.values[row], version=int(answer.versions[row]),
                              actions=answer.actions[row], available=self._games.obs["available"][slot, side],
                              units=self._games.slot_units(slot, side), buildings=self._buildings)


def _discard(writer: RecordingWriter) -> None:
    try:
        writer.drop()
    except OSError as error:  # costs the recording's disk space, not the rating
        log.warning("an unfinished recording is not removed: %s", error)
