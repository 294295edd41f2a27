"""Game that clients' actions control, simulated from one observation to the next."""

from collections import defaultdict
from collections.abc import Iterable

from dota.play import InteractiveGame, Order
from dota.valve_ids import TEAMS, valve_ids
from dota.vec_game import BOTS, Controller, Winner
from five.protos.valve import dotaservice_pb2 as pb
from five.protos.valve.bot_world_state_pb2 import CMsgBotWorldState
from five.run.config.dotaservice import DotaServiceConfig
from five.services.dotaservice import metrics
from five.services.dotaservice.action_orders import Action, Point, order_of
from five.services.dotaservice.game_plan import TEAM_PLAYERS, GamePlan


class LockstepGame:
    """Game of a plan. ``tick`` counts the observations after the first.

    Not thread-safe: one call at a time. Teams are 0 (Radiant) and 1 (Dire). Raises ValueError as InteractiveGame.
    """

    def __init__(self, plan: GamePlan, seed: int, settings: DotaServiceConfig) -> None:
        self.plan = plan
        self.tick = 0
        self._game = InteractiveGame(plan.config, seed, plan.lineup)
        self._ids = valve_ids(plan.config.patch)
        self._names = {p: plan.lineup[p // TEAM_PLAYERS][p % TEAM_PLAYERS] for p in plan.playing}
        self._due: dict[int, list[tuple[int, Order]]] = defaultdict(list)  # by frame after the observation
        self._states: dict[int, bytes] = {}
        self._read: dict[int, CMsgBotWorldState] = {}
        self._absent = {p: hero for p, hero in enumerate(plan.heroes) if p not in plan.playing}
        self._idle = plan.players(pb.HERO_CONTROL_MODE_IDLE)
        for player in self._idle:
            self._game.take(player, True)
        for player in plan.players(pb.HERO_CONTROL_MODE_CONTROLLED):
            self._game.take(player, True, scripted=settings.scripted_buying, learns=settings.scripted_levelling)
            if not settings.scripted_levelling:
                self._game.forget_skills(player)
        for team in range(len(TEAMS)):
            has_bots = bool(plan.players(pb.HERO_CONTROL_MODE_DEFAULT, team))
            self._game.controllers[team] = BOTS[settings.bot] if has_bots else Controller.POLICY

    @property
    def winner(self) -> Winner:
        """Winner, or RUNNING."""
        return self._game.winner_now

    def controls(self, team: int) -> bool:
        """Return whether a client's actions play heroes of the team."""
        return bool(self.plan.players(pb.HERO_CONTROL_MODE_CONTROLLED, team))

    def state(self, team: int) -> bytes:
        """Return the serialized CMsgBotWorldState of what the team sees at this tick."""
        if team not in self._states:
            self._states[team] = self._game.world_state(team, self._absent)
        return self._states[team]

    def advance(self) -> None:
        """Play to the next observation, or to the end of the game."""
        for hero in self._idle:
            self._game.order(hero, Order("hold"))
        for frame in range(self.plan.ticks):
            if self.winner is not Winner.RUNNING:
                break
            for hero, order in self._due.pop(frame, ()):
                metrics.ACTIONS.labels(self._submit(hero, order) or "done").inc()
            if self._game.frames_left == 0:
                self._game.begin()
            self._game.frame()
            metrics.FRAMES.inc()
        self._due.clear()
        self._states.clear()
        self._read.clear()
        self.tick += 1

    def act(self, team: int, dota_time: float | None, actions: Iterable[Action]) -> bool:
        """Replace the team's actions until the next observation. Return False if they are stale.

        ``dota_time`` is that of the observation that they answer, None for the newest. Stale actions and those that
        cannot be done are ignored and counted.
        """
        if dota_time is not None and dota_time != self._seen(team).dota_time:
            metrics.ACTIONS.labels(metrics.STALE).inc(sum(1 for _ in actions))
            return False
        for orders in self._due.values():
            orders[:] = [(hero, order) for hero, order in orders if hero // TEAM_PLAYERS != team]
        controlled = self.plan.players(pb.HERO_CONTROL_MODE_CONTROLLED, team)
        for action in actions:
            if action.player not in controlled:
                outcome = metrics.NOT_CONTROLLED
            elif not 0 <= action.actionDelay < self.plan.ticks:
                outcome = metrics.LATE
            else:
                found = order_of(action, self._names[action.player], self._ids, _ReferenceLookup(self, action.player))
                if isinstance(found, Order):
                    self._due[action.actionDelay].append((action.player, found))
                    continue
                outcome = found.reason or "done"
            metrics.ACTIONS.labels(outcome).inc()
        return True

    def _submit(self, hero: int, order: Order) -> str:
        """Submit an order; return the reason of its refusal or ''."""
        reason = self._game.order(hero, order).reason
        if reason == "slot" and order.kind == "swap":  # the first slot may be the empty one
            reason = self._game.order(hero, Order("swap", slot=order.to, to=order.slot)).reason
        return reason

    def _seen(self, team: int) -> CMsgBotWorldState:
        if team not in self._read:
            self._read[team] = CMsgBotWorldState.FromString(self.state(team))
        return self._read[team]


class _ReferenceLookup:
    """Lookup of a side's handles and numbers in its newest observation."""

    def __init__(self, game: LockstepGame, player: int) -> None:
        self._game = game
        self._player = player

    def unit(self, handle: int) -> tuple[int, int] | None:
        """Return slot and generation of the unit with that handle; None for a handle that was never sent."""
        return self._game._game.unit_of_bot_handle(handle)

    def rune(self, number: int) -> Point | None:
        """Return the place of a rune by its index in rune_infos."""
        runes = self._seen.rune_infos
        return (runes[number].location.x, runes[number].location.y) if 0 <= number < len(runes) else None

    def dropped_item(self, item: int) -> Point | None:
        """Return the place of the nearest visible item of that number on the ground."""
        places = [(d.location.x, d.location.y) for d in self._seen.dropped_items if d.item_id == item]
        own = self._unit
        if own is None or not places:
            return None
        x, y = own.location.x, own.location.y
        return min(places, key=lambda p: (p[0] - x) ** 2 + (p[1] - y) ** 2)

    def item_slot(self, item: int) -> int | None:
        """Return the hero's slot that holds an item of that number."""
        own = self._unit
        return None if own is None else next((i.slot for i in own.items if i.ability_id == item), None)

    @property
    def _seen(self) -> CMsgBotWorldState:
        return self._game._seen(self._player // TEAM_PLAYERS)

    @property
    def _unit(self) -> CMsgBotWorldState.Unit | None:
        return next((u for u in self._seen.units
                     if u.unit_type == CMsgBotWorldState.HERO and u.player_id == self._player), None)
