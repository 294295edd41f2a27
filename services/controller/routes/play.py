"""Routes below /v1/play: games that people play."""

import logging
from collections.abc import Awaitable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Query, Response, WebSocket
from pydantic import BaseModel, ConfigDict, Field

from five.clients.play import PlayClient
from five.services.controller.games.play_socket import PlaySocket, game_state_json
from five.services.controller.http.auth import Caller, Role
from five.services.controller.http.dependencies import Context, ContextDep, Operator, Viewer
from five.services.controller.http.problems import Problem, responses
from five.services.controller.routes.games import BYTES, HEADERS
from rapid.rpc.errors import CallFailed, StatusCode

log = logging.getLogger(__name__)
router = APIRouter(tags=["play"])
T = TypeVar("T")
GameId = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$", description="A game's id.")]
HeroName = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,64}$")]
WHO = r"^(agent|newest|random|scripted|scripted-easy|scripted-hard|[0-9]{1,15})$"
ASK_SECONDS = 2.0  # deadline of the play service's answer
NO_GAME = "The game does not exist or has ended."
NO_SERVICE = "This run has no play service (services.play.enabled)."
UNAVAILABLE = "This run has no play service (services.play.enabled), or it is unavailable."
_SEAT: dict[str, Any] = {"hero": 0, "name": "sniper", "team": 0, "who": "ada", "held": True}
_STATE: dict[str, Any] = {
    "game": "5e1f0c0d5e1f0c0d5e1f0c0d5e1f0c0d", "opened_by": "ada", "opened_at": 1789000000.0,
    "players": ["version-120", "version-120"], "time": 61.5, "frame": 4545, "running": True, "winner": 0,
    "version": 120, "late": 3, "late_frames": 0, "delay_ms": 12.5, "watching": 1, "seats": [_SEAT]}
_RECORDED: dict[str, Any] = {
    "game": _STATE["game"], "bytes": 2100000, "players": ["ada", "version-120"], "people": ["ada"], "seconds": 1830.0,
    "at": 1789000000.0, "winner": 1, "kills": [21, 9]}
_PERSON: dict[str, Any] = {"name": "ada", "mu": 27.1, "sigma": 7.2, "won": 1, "lost": 0, "drawn": 0,
                           "abandoned": 2, "last_at": 1789000000.0}


class Seat(BaseModel):
    """A hero of a game and its player."""

    model_config = ConfigDict(json_schema_extra={"examples": [_SEAT]})

    hero: int = Field(description="0 to 9: five times its team, plus its index in the team.")
    name: str = Field(description="The hero's name.")
    team: int = Field(description="0 Radiant, 1 Dire.")
    who: str | None = Field(description="Name of the token that owns it; null: the agent.")
    held: bool = Field(description="Whether that person plays it now; otherwise the agent does.")


class PlayedGame(BaseModel):
    """A game that people play."""

    model_config = ConfigDict(json_schema_extra={"examples": [_STATE]})

    game: str = Field(description="Id of the game.")
    opened_by: str = Field(description="Name of the token that opened it.")
    opened_at: float = Field(description="Opening time, seconds since the epoch.")
    players: list[str] = Field(description="Players of each side's other heroes.")
    time: float = Field(description="Seconds since the horn.")
    frame: int = Field(description="Engine frames since the start, 30 a second.")
    running: bool = Field(description="Whether its clock runs; it is stopped while the run is paused.")
    winner: int = Field(description="0 undecided, 1 Radiant, 2 Dire, 3 drawn game.")
    version: int = Field(description="The newest version in it, pinned when it was opened; -1: bots only.")
    late: int = Field(
        description="Timesteps whose agent actions arrived too late; the previous commands stayed in force.")
    late_frames: int = Field(description="Engine frames that began late.")
    delay_ms: float = Field(description="Latency of the agents' last actions, ms.")
    watching: int = Field(description="Number of connected people, including spectators.")
    seats: list[Seat] = Field(description="All heroes.")


class PlayedGames(BaseModel):
    """Games that people play now."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"games": [_STATE]}]})

    games: list[PlayedGame] = Field(description="Oldest first.")


class PlayOffer(BaseModel):
    """The heroes, opponents and limits of the games that people can play."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "server": True, "why": "", "mode": "5v5", "patch": "7.21d", "heroes_per_team": 5, "heroes": ["sniper"],
        "versions": [120, 100], "bots": ["random", "scripted-easy", "scripted", "scripted-hard"], "games_at_once": 1,
        "spectator_delay_seconds": 120.0, "games": []}]})

    server: bool = Field(description="Whether a play service is available.")
    why: str = Field(description="Why no game can be opened now; '' if one can.")
    mode: str = Field("", description="Game mode.")
    patch: str = Field("", description="Patch of the game data.")
    heroes_per_team: int = Field(0, description="Heroes of a team.")
    heroes: list[str] = Field([], description="The pool that line-ups are sampled from.")
    versions: list[int] = Field([], description="Versions that can be played with or against, the newest few.")
    bots: list[str] = Field([], description="Bots that can be played with or against.")
    games_at_once: int = Field(0, description="Maximum number of simultaneous games.")
    spectator_delay_seconds: float = Field(0.0, description="Delay of the spectators' view, s.")
    games: list[PlayedGame] = Field([], description="Games that are being played.")


class RecordedGame(BaseModel):
    """The recording of a game that people played."""

    model_config = ConfigDict(json_schema_extra={"examples": [_RECORDED]})

    game: str = Field(description="Id of the game, for GET /v1/play/recordings/{game}.")
    bytes: int = Field(description="Size of the recording, bytes.")
    players: list[str] = Field(description="Players of each side: people, and the player of the other heroes.")
    people: list[str] = Field(description="The people in it.")
    seconds: float = Field(description="Seconds since the horn at its end.")
    at: float = Field(description="End time, seconds since the epoch.")
    winner: int = Field(description="0 undecided, 1 Radiant, 2 Dire, 3 drawn game.")
    kills: list[int] = Field(description="Kills of each side.")


class RecordedGames(BaseModel):
    """Recordings of games that people played."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"recordings": [_RECORDED]}]})

    recordings: list[RecordedGame] = Field(description="The newest first.")


class OpenGameRequest(BaseModel):
    """Settings of a new game."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{
        "team": 0, "heroes": [0], "lineup": None, "with": "agent", "against": "newest", "seed": None}]})

    team: int = Field(0, ge=0, le=1, strict=True, description="Your side: 0 Radiant, 1 Dire.")
    heroes: list[Annotated[int, Field(ge=0, le=4, strict=True)]] = Field(
        [0], min_length=1, max_length=5, description="Which of its heroes are yours, from 0.")
    lineup: list[Annotated[list[HeroName], Field(min_length=1, max_length=5)]] | None = Field(
        None, min_length=2, max_length=2, description="Heroes of both teams; null: sampled from the pool.")
    mates: str = Field("agent", alias="with", pattern=WHO,
                       description="Player of your side's other heroes, and of "
                       "yours while you are away: agent (the newest version), a version's number, or a bot.")
    against: str = Field("newest", pattern=WHO, description="Player of the other side: newest, a version's number, or "
                         "a bot.")
    seed: int | None = Field(None, ge=0, le=2**53 - 1, strict=True, description="The game's seed; null: any.")


class OpenedGame(BaseModel):
    """A new game."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "game": _STATE["game"], "seat": _SEAT, "seats": [_SEAT]}]})

    game: str = Field(description="Id of the game. Connect to /v1/play/games/{game}/socket (docs/play.md).")
    seat: Seat = Field(description="Your first hero.")
    seats: list[Seat] = Field(description="All of your heroes; the agent plays them until you join.")


class EndedGame(BaseModel):
    """A game that was ended."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"game": _STATE["game"]}]})

    game: str = Field(description="Id of the game.")


class PersonRating(BaseModel):
    """A person's rating."""

    model_config = ConfigDict(json_schema_extra={"examples": [_PERSON]})

    name: str = Field(description="The person's token name.")
    mu: float = Field(description="TrueSkill's mean, in points of the run's ladder: random play is 0.")
    sigma: float = Field(description="Uncertainty of the rating, one standard deviation.")
    won: int = Field(description="Games won.")
    lost: int = Field(description="Games lost.")
    drawn: int = Field(description="Games drawn.")
    abandoned: int = Field(description="Games left early or ended without a result; they do not change the rating.")
    last_at: float = Field(description="End time of the last game, seconds since the epoch.")


class PersonRatings(BaseModel):
    """Ratings of people, separate from those of versions."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ratings": [_PERSON]}]})

    ratings: list[PersonRating] = Field(description="The strongest first.")


def _client(context: Context) -> PlayClient:
    if context.play is None:
        raise Problem(409, NO_SERVICE)
    return context.play()


async def _call(call: Awaitable[T]) -> T:
    """Await a call to the play service and convert its errors to problems."""
    try:
        return await call
    except CallFailed as failure:
        match failure.code:
            case StatusCode.NOT_FOUND:
                raise Problem(404, failure.details) from None
            case StatusCode.INVALID_ARGUMENT:
                raise Problem(422, failure.details, errors=[{"where": "body", "what": failure.details}]) from None
            case StatusCode.FAILED_PRECONDITION:
                raise Problem(409, failure.details) from None
            case StatusCode.RESOURCE_EXHAUSTED:
                raise Problem(429, failure.details, headers={"Retry-After": "30"}) from None
        raise Problem(503, f"the play service is unavailable: {failure.details}", headers={"Retry-After": "2"}
                      ) from None


@router.get("/play")
async def play(caller: Viewer, context: ContextDep) -> PlayOffer:
    """Return what can be played: heroes, versions and bots, and whether a play service is available."""
    if context.play is None:
        return PlayOffer(server=False, why=NO_SERVICE)
    try:
        offer = await context.play().offer(ASK_SECONDS)
        games = await context.play().games(ASK_SECONDS)
    except CallFailed as failure:
        return PlayOffer(server=False, why=f"the play service is unavailable: {failure.details}")
    return PlayOffer(
        server=True, why=offer.refused, mode=offer.mode, patch=offer.patch, heroes_per_team=offer.heroes_per_team,
        heroes=list(offer.hero_pool), versions=list(offer.versions), bots=list(offer.bots), games_at_once=offer.games,
        spectator_delay_seconds=offer.spectator_delay_seconds, games=[_game(state) for state in games])


def _game(state: Any) -> PlayedGame:
    return PlayedGame.model_validate(game_state_json(state))


@router.get("/play/games", responses=responses(_409=NO_SERVICE))
async def played_games(caller: Viewer, context: ContextDep) -> PlayedGames:
    """Return the games that people play now."""
    return PlayedGames(games=[_game(state) for state in await _call(_client(context).games(ASK_SECONDS))])


@router.post("/play/games", status_code=201, responses={
    201: {"headers": {"Location": {"description": "The game.", "schema": {"type": "string"}}}},
    **responses(_409=UNAVAILABLE, _429="Too many games or requests.")})
async def open_game(caller: Operator, context: ContextDep, body: OpenGameRequest, response: Response) -> OpenedGame:
    """Open a game in real time with heroes for the caller. The agent plays them until the caller joins."""
    answer = await _call(_client(context).open(caller.name, body.team, body.heroes, body.lineup, body.mates,
                                               body.against, body.seed))
    mine = [Seat.model_validate(seat) for seat in game_state_json(answer.state)["seats"] if seat["who"] == caller.name]
    response.headers["Location"] = f"/v1/play/games/{answer.game}"
    return OpenedGame(game=answer.game, seat=mine[0], seats=mine)


@router.get("/play/games/{game}", responses=responses(_404=NO_GAME, _409=NO_SERVICE))
async def played_game(caller: Viewer, context: ContextDep, game: GameId) -> PlayedGame:
    """Return one game and its seats."""
    for state in await _call(_client(context).games(ASK_SECONDS)):
        if state.game == game:
            return _game(state)
    raise Problem(404, f"game {game} is not in progress")


@router.delete("/play/games/{game}", responses=responses(_404=NO_GAME, _409=UNAVAILABLE))
async def end_game(caller: Operator, context: ContextDep, game: GameId) -> EndedGame:
    """End a game without a result; it counts as abandoned."""
    await _call(_client(context).close_game(game, caller.name))
    return EndedGame(game=game)


@router.get("/play/recordings", responses=responses(_409=UNAVAILABLE))
async def recorded_games(caller: Viewer, context: ContextDep) -> RecordedGames:
    """Return the newest recordings of finished games."""
    found = await _call(_client(context).recordings(ASK_SECONDS))
    return RecordedGames(recordings=[RecordedGame(
        game=r.game, bytes=r.size, players=list(r.players), people=list(r.people), seconds=round(r.seconds, 1), at=r.at,
        winner=r.winner, kills=list(r.kills)) for r in found])


@router.get("/play/recordings/{game}", response_class=Response, responses={
    200: {"description": "The recording.", "content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}},
    **responses(_404="The game has no recording.", _409=UNAVAILABLE)})
async def recorded_game(caller: Viewer, context: ContextDep, game: GameId) -> Response:
    """Return a game's recording: the whole game from the spectators' view."""
    return Response(await _call(_client(context).recording(game)), media_type=BYTES, headers=HEADERS)


@router.get("/play/ratings")
def people_ratings(caller: Viewer, context: ContextDep) -> PersonRatings:
    """Return the ratings of people. Their games do not change the ratings of versions or the league."""
    rows = context.state.table("people").all().values()
    found = [PersonRating.model_validate(row) for row in rows]
    return PersonRatings(ratings=sorted(found, key=lambda p: (-p.mu, p.name)))


@router.websocket("/play/games/{game}/socket")
async def socket(socket: WebSocket, game: str, spectate: bool = False,
                 hero: Annotated[list[int] | None, Query()] = None) -> None:
    """Connect a person to a game (docs/play.md). The middleware has authenticated the caller. Playing needs the role
    operator as long as it lasts."""
    context: Context = socket.app.state.context
    caller: Caller = socket.state.caller
    role, slots = (Role.VIEWER, context.spectator_slots) if spectate else (Role.OPERATOR, context.player_slots)
    try:
        if context.play is None or len(game) != 32:
            raise Problem(404, f"game {game!r} is not in progress")
        if caller.role < role:
            raise Problem(403, "viewers may spectate only")
        slot = slots.take(caller)
    except Problem as problem:
        log.debug("web socket refused: %s", problem)
        await socket.close(1008)  # before it is accepted: HTTP 403
        return
    with slot:
        await socket.accept()
        wanted = [h for h in hero or () if 0 <= h <= 9]
        await PlaySocket(socket, context.play().join(game, caller.name, spectate, wanted),
                         socket.state.revalidate, role).run()
