"""Game that people take part in: frame by frame, some heroes follow people's orders, the others policies and bots.

A timestep begins with the choices of policies and bots (``begin``) and has 4 engine frames (``frame``); observations
are written after the last one. A hero under human control (``take``) follows only its person's orders. An order is
checked when it is given and executed at the start of the next frame. Without people such a game is bit for bit the same
as a stepped one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dota import _core
from dota.config import GameConfig
from dota.events import Event, events_of
from dota.game import Game
from dota.replay import PersonRow, Replay
from dota.vec_game import COMMANDS, Winner

FRAMES = 4  # engine frames of a timestep
PLAYERS: Final = COMMANDS[0]
OFFERED: Final = int(_core.OFFERED)  # newest timesteps, the current one included, whose observations `choose` accepts

# Kinds of orders, in the order of the core's PersonKind. docs/play.md says what each takes and does.
KINDS: Final = ("move", "follow", "attack", "attack_move", "stop", "hold", "cast", "use", "toggle", "level", "talent",
                "buy", "sell", "swap", "drop", "pickup", "courier", "buyback", "glyph", "shrine", "scan")
REFUSALS: Final = tuple(_core.REFUSALS)  # reasons for refusing an order
_NAMED = ("buy", "courier")  # kinds that read `item`
assert len(KINDS) == _core.PERSON_KINDS
_KIND = {kind: number for number, kind in enumerate(KINDS)}


@dataclass(frozen=True)
class Order:
    """Unit order of a person. ``kind`` is one of KINDS and determines which other fields are read.

    ``target``: unit by slot and generation, as in ``spectate`` and a frame's unit table. ``at``: position in world
    units. ``slot``, ``to``: slots of abilities (0-5), talents (0-7) or items (0-5 inventory, 6-8 backpack, 9-14 stash,
    15 teleport scrolls). ``item``: an item's name, or the courier's errand. ``queue``: execute after the current order
    instead of now. ``once``: the order `attack` ends when one attack is launched.
    """

    kind: str
    target: tuple[int, int] | None = None
    at: tuple[float, float] | None = None
    slot: int = -1
    to: int = -1
    item: str = ""
    queue: bool = False
    once: bool = False


class Verdict(NamedTuple):
    """Result of checking an order: accepted, or the reason for the refusal, one of REFUSALS."""

    ok: bool
    reason: str


class InteractiveGame(Game):
    """Game that people take part in, with all of `Game`'s attributes.

    ``obs``, ``controllers``, ``winner``, ``time``, ``stats``, ``signals`` and ``lineup`` are those of ``dota.Game``;
    ``step`` plays a whole timestep. An object plays one game only. Raises ValueError as ``Game`` does.
    """

    def __init__(self, config: GameConfig, seed: int, lineup: Sequence[Sequence[str]] | None = None) -> None:
        self._play: Any = None
        self._tape: Replay | None = None
        self._frames_left = 0
        self._over = False
        self._unrecorded = False  # whether people did something that a recording from now on would lack
        super().__init__(config, seed, lineup)
        self._play = _core.Play(self._vec._core, 0)

    def reset(self, seed: int, lineup: Sequence[Sequence[str]] | None = None) -> None:
        """Raise ValueError: a game with people cannot be restarted."""
        if self._play is not None:
            raise ValueError("a game with people cannot be reset: create another one")
        super().reset(seed, lineup)

    def restore(self, snapshot: bytes) -> None:
        """Raise ValueError: snapshots do not hold people's orders."""
        raise ValueError("a game with people cannot be restored: a snapshot does not hold their orders")

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a game with people cannot be copied or pickled: save its replay instead")

    @property
    def engine_frame(self) -> int:
        """Engine frames since the start, 30 a second."""
        return int(self._play.engine_frame())

    @property
    def winner_now(self) -> Winner:
        """Winner after the last frame; ``winner`` changes at the end of a timestep only."""
        return Winner(int(self._play.winner()))

    @property
    def frames_left(self) -> int:
        """Remaining frames of the timestep; at 0 ``begin`` is due."""
        return self._frames_left

    def take(self, hero: int, held: bool, scripted: bool = False, learns: bool | None = None) -> None:
        """Give a hero (team * 5 + seat) to a person, or back (``held`` False), from the next frame on.

        Policy and bot commands do not affect a hero under human control. With ``scripted`` the script goes on to buy,
        arrange and pick up items and to use the courier for it, and with ``learns`` (None: as ``scripted``) to learn
        abilities and talents. Raises IndexError for a hero that does not play.
        """
        learned = bool(scripted) if learns is None else bool(learns)
        self._play.take(int(hero), bool(held), bool(scripted), learned)
        self._record_row(PersonRow(self.engine_frame, int(hero), held=bool(held), scripted=bool(scripted),
                                   learns=learned))

    def forget_skills(self, hero: int) -> None:
        """Give a hero back the ability points that the script spent at the start.

        Raises ValueError after the first frame and in a recorded game, which cannot repeat it, and IndexError for a
        hero that does not play.
        """
        if self._tape is not None:
            raise ValueError("the game is recorded, and a replay cannot repeat this: record a game without it")
        self._play.forget_skills(int(hero))
        self._unrecorded = True

    def order(self, hero: int, order: Order) -> Verdict:
        """Check an order for a hero under human control; it is executed at the next frame if still possible.

        An order that cannot be executed is refused and changes nothing, whatever its numbers. The refusal of an order
        at an unseen unit is the same as at a unit that does not exist.
        """
        row = PersonRow(self.engine_frame, int(hero), _KIND.get(order.kind, -1), _pair(order.target),
                        _round_position(order.at),
                        _to_int16(order.slot), _to_int16(order.to), order.item if order.kind in _NAMED else "",
                        bool(order.queue), bool(order.once))
        reason = apply_person_row(self._play, row)
        if not reason:
            self._record_row(row)
        return Verdict(not reason, reason)

    def begin(self, actions: npt.NDArray[np.int16] | None = None) -> None:
        """Begin a timestep with ``actions`` int16 [2, H, 6], which policies chose from ``obs``; bots act by
        ``controllers``.

        Raises ValueError for another shape or dtype, and while a timestep is in progress.
        """
        given = self._actions(actions)
        self._over = bool(self.winner)
        self._play.begin(given, self.controllers)
        self._frames_left = FRAMES

    def choose(self, actions: npt.NDArray[np.int16], age: int = 0) -> None:
        """Set the policies' actions int16 [2, H, 6] for the timestep in progress, chosen from the ``obs`` at its start.

        A policy can thus compute while the frames are played. Until the last frame, a call has the effect of passing
        the actions to ``begin``; without a call, the policies' heroes continue. ``age``: how many timesteps older the
        ``obs`` were, less than OFFERED (actions keep the meaning that they had there). Raises ValueError as
        ``begin``, for an age out of range, and between timesteps.
        """
        self._play.choose(self._actions(actions), self.controllers, age)

    def _actions(self, actions: npt.NDArray[np.int16] | None) -> npt.NDArray[np.int16]:
        no_actions = self._vec._no_actions[0]
        if actions is None:
            actions = no_actions
        if actions.shape != no_actions.shape or actions.dtype != np.int16:
            raise ValueError(f"actions must be int16 {no_actions.shape}, not {actions.dtype} {actions.shape}")
        return np.ascontiguousarray(actions)

    def frame(self) -> None:
        """Play one engine frame. After the fourth of a timestep ``obs``, ``stats`` and ``signals`` are updated.

        A finished game does not change. Raises ValueError when no timestep has begun.
        """
        last = self._play.frame()
        self._frames_left -= 1
        if last and self._tape is not None and not self._over:
            self._tape.append(np.frombuffer(self._play.commands(), np.int16).reshape(COMMANDS))
            if len(self._tape) % self._tape.check_every == 0:
                self._tape.check(self.hash())

    def step(self, actions: npt.NDArray[np.int16] | None = None) -> None:
        """Play a whole timestep: ``begin`` and four times ``frame``."""
        self.begin(actions)
        for _ in range(FRAMES):
            self.frame()

    def write_seen(self, team: int | None, out: dict[str, npt.NDArray[Any]]) -> None:
        """Write the game into the arrays of a frame of ``dota.spectator.schema``.

        ``team`` None writes everything; 0 or 1 writes only what that team sees. Raises ValueError for another team and
        for a frame that lacks a part.
        """
        self._play.write_seen(team, out)

    def world_state(self, team: int, absent: Mapping[int, int] = MappingProxyType({})) -> bytes:
        """Return what a team (0 Radiant, 1 Dire) sees now as Dota 2 tells it to bots: a serialized CMsgBotWorldState.

        It holds the events since the team's previous world state, from the first world state of either team on. The
        game does not change. ``absent``: Valve's number of the hero, by player (team * 5 + seat), for players that have
        no hero in the game; ``players`` lists them as alive. Raises ValueError for another team.
        """
        return bytes(self._play.world_state(team, [absent.get(player, 0) for player in range(PLAYERS)]))

    def unit_of_bot_handle(self, handle: int) -> tuple[int, int] | None:
        """Return slot and generation of the unit with that handle in world states, as orders name units; None when no
        unit has it now."""
        unit: tuple[int, int] | None = self._play.unit_of_bot_handle(handle) if 0 <= handle < 1 << 24 else None
        return unit

    def events(self, team: int | None = None) -> list[Event]:
        """Return the events of the last frame in order: all (None), or those visible to a team. After a reset: those of
        the start.

        Raises ValueError for another team.
        """
        return events_of(self._play.events(team))

    def record(self) -> Replay:
        """Start recording, right after construction; the returned replay grows every timestep and includes people's
        orders.

        Raises ValueError when the game has begun, or a person took a hero.
        """
        if self.engine_frame or self._tape is not None or self._unrecorded:
            raise ValueError("the game has begun, people took part in it, or it is already recorded: start recording "
                             "right after construction")
        self._tape = super().record()
        self._vec._forget([0])  # it is written here, at the end of each timestep
        return self._tape

    def _record_row(self, row: PersonRow) -> None:
        if self._tape is None:
            self._unrecorded = True
        else:
            self._tape.people.append(row)


def apply_person_row(play: Any, row: PersonRow) -> str:
    """Apply a replay's row to a core game; return the reason of a refusal, or ''."""
    if row.kind is None:
        play.take(row.hero, row.held, row.scripted, row.learns)
        return ""
    return str(play.order(row.hero, row.kind, row.target, row.at, row.slot, row.to, row.item, row.queue,
                          row.once))


def _to_int16(number: int) -> int:
    return int(number) if -1 <= number < 1 << 15 else -1


def _pair(target: tuple[int, int] | None) -> tuple[int, int] | None:
    if target is None:
        return None
    slot, generation = target
    return (int(slot), int(generation)) if 0 <= slot < 1 << 15 and 0 <= generation < 1 << 16 else (-1, 0)


def _round_position(at: tuple[float, float] | None) -> tuple[float, float] | None:
    """Round a position to 32-bit floats, the precision of a replay."""
    if at is None:
        return None
    x, y = (float(np.float32(min(max(v, -1e9), 1e9) if math.isfinite(v) else v)) for v in at)
    return x, y
