"""Games of an anneal's guard, played during ratings: the newest version against the last one before the change."""

import itertools
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import redis

from dota.config import GameConfig
from five.agent.anneal.document import ACTIVE, Anneal, merge_overrides
from five.agent.anneal.guard import Pair
from five.agent.anneal.pair_records import pair_key, pair_seed, pair_to_json
from five.agent.anneal.variants import VARIANTS, Variant
from five.agent.standings import player_name
from five.services.evaluator.matches import Pairing, PairingResult, TeamPlayer
from rapid.store.errors import Corrupt
from rapid.store.tables import Table

log = logging.getLogger(__name__)
POLL_SECONDS = 2.0


@dataclass
class _OpenPair:
    """Pair in progress: its record's data, and the results so far by the newest version's side."""

    trial: str
    rule: Variant
    number: int
    version: int
    share: float
    results: dict[int, float] = field(default_factory=dict)


@dataclass
class GuardLoop:
    """Source of the guard's pairings, which records pairs whose games have both ended.

    ``read`` returns the anneal's document, ``newest`` the tested version, ``game`` the evaluated game without the
    change. A pair with lost games is played again under the same number.
    """

    read: Callable[[], Any]
    table: Table
    newest: Callable[[], int | None]
    game: GameConfig
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._anneal: Anneal | None = None
        self._polled_at = -POLL_SECONDS
        self._changed = self.game
        self._trial = ""
        self._done: dict[Variant, set[int]] = {rule: set() for rule in VARIANTS}
        self._waiting: list[Pairing] = []
        self._open: dict[tuple[str, Variant, int], _OpenPair] = {}
        self._games: list[tuple[Pairing, _OpenPair]] = []

    def next_pairing(self) -> Pairing | None:
        """Return the next game; None if no anneal is active or all pairs are played."""
        self._poll()
        if self._anneal is None:
            return None
        if not self._waiting:
            self._assign(self._anneal)
        return self._waiting.pop() if self._waiting else None

    def on_result(self, result: PairingResult) -> bool:
        """Record an ended game. Return whether it belongs to the guard."""
        for i, (pairing, pair) in enumerate(self._games):
            if pairing is result.pairing:
                del self._games[i]
                pair.results[pairing.side] = 2 * result.score - 1
                if len(pair.results) == 2:
                    self._store_pair(pair)
                return True
        return False

    def drop(self) -> None:
        """Discard games in progress; their pairs are played again."""
        self._waiting.clear()
        self._open.clear()
        self._games.clear()

    @property
    def played(self) -> int:
        """Number of recorded pairs of the current attempt."""
        return sum(map(len, self._done.values()))

    def _poll(self) -> None:
        now = self.clock()
        if now - self._polled_at < POLL_SECONDS:
            return
        self._polled_at = now
        try:
            document = self.read()
            anneal = None if document is None else Anneal.model_validate(document)
            if anneal is None or anneal.state not in ACTIVE:
                self._anneal = None
                return
            if anneal.trial != self._trial:
                self._begin_attempt(anneal)
            self._anneal = anneal
        except (redis.RedisError, ValueError, Corrupt) as error:  # must not stop the ratings
            log.warning("the guard waits: the anneal's document cannot be read: %s", error)
            self._anneal = None

    def _begin_attempt(self, anneal: Anneal) -> None:
        """Switch to another attempt: load its recorded pairs and remove those of other attempts."""
        self._changed = GameConfig.model_validate(merge_overrides(self.game.model_dump(mode="json"), anneal.overrides))
        self.drop()
        self._done = {rule: set() for rule in VARIANTS}
        rows = self.table.all()
        for name in rows:
            trial, rule, number = name.rsplit("/", 2)
            if trial == anneal.trial:
                self._done[Variant(rule)].add(int(number))
            else:
                self.table.set(name, None)
        self._trial = anneal.trial

    def _assign(self, anneal: Anneal) -> None:
        """Queue both games of the next pair, under the rule with fewer assigned pairs."""
        version = self.newest()
        if version is None or version <= max(anneal.began, anneal.base):
            return
        assigned = {rule: len(self._done[rule]) + sum(p.rule is rule for p in self._open.values()) for rule in VARIANTS}
        rule = min(VARIANTS, key=lambda r: assigned[r])
        if assigned[rule] >= anneal.guard.pairs:
            return
        number = next(n for n in itertools.count()
                      if n not in self._done[rule] and (anneal.trial, rule, n) not in self._open)
        pair = _OpenPair(anneal.trial, rule, number, version, anneal.shown_at(version))
        self._open[(pair.trial, rule, number)] = pair
        agent, before = (TeamPlayer(player_name(v), version=v) for v in (version, anneal.base))
        for side in (1, 0):
            pairing = Pairing(agent, before, side, pair_seed(pair.trial, number),
                              self._changed if rule is Variant.NEW else None)
            self._waiting.append(pairing)
            self._games.append((pairing, pair))

    def _store_pair(self, pair: _OpenPair) -> None:
        self._open.pop((pair.trial, pair.rule, pair.number), None)
        if pair.trial != self._trial:
            return  # the pair belongs to an earlier attempt
        complete = Pair(pair.rule, pair.number, pair.version, pair.share, (pair.results[0], pair.results[1]))
        self.table.set(pair_key(pair.trial, pair.rule, pair.number), pair_to_json(complete))
        self._done[pair.rule].add(pair.number)
