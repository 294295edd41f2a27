"""Games that people play: what there is to play, games opened and ended, and each person's socket into one."""

from collections.abc import Awaitable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Query, Response, WebSocket
from pydantic import BaseModel, ConfigDict, Field

from five.clients.play import PlayClient
from five.services.controller.games.play_socket import Socket, state_of
from five.services.controller.http.auth import Caller, Role
from five.services.controller.http.dependencies import Context, Here, Operator, Viewer
from five.services.controller.http.problems import Problem, responses
from five.services.controller.routes.games import BYTES, HEADERS
from rapid.rpc.errors import CallFailed, StatusCode

router = APIRouter(tags=["play"])
T = TypeVar("T")
GameId = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$", description="A game's id.")]
HeroName = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,64}$")]
WHO = r"^(agent|newest|random|scripted|scripted-easy|scripted-hard|[0-9]{1,15})$"
ASK_SECONDS = 2.0  # that the play service gets to say what there is
NONE = "There is no such game, or it is over."
AWAY = "This run has no play service (services.play.enabled), or it does not answer."
_SEAT: dict[str, Any] = {"hero": 0, "name": "sniper", "team": 0, "who": "ada", "held": True}
_STATE: dict[str, Any] = {"game": "5e1f0c0d5e1f0c0d5e1f0c0d5e1f0c0d", "opened_by": "ada", "opened_at": 1789000000.0,
          "players": ["version-120", "version-120"], "time": 61.5, "frame": 4545, "running": True, "winner": 0,
          "version": 120, "late": 3, "late_frames": 0, "delay_ms": 12.5, "watching": 1, "seats": [_SEAT]}
_RECORDED: dict[str, Any] = {"game": _STATE["game"], "bytes": 2100000, "players": ["ada", "version-120"],
             "people": ["ada"], "seconds": 1830.0, "at": 1789000000.0, "winner": 1, "kills": [21, 9]}
_PERSON: dict[str, Any] = {"name": "ada", "mu": 27.1, "sigma": 7.2, "won": 1, "lost": 0, "drawn": 0, "abandoned": 2,
                           "last_at": 1789000000.0}


class Seat(BaseModel):
    """A hero of a game, and who plays it."""

    model_config = ConfigDict(json_schema_extra={"examples": [_SEAT]})

    hero: int = Field(description="0 to 9: five times its team, and its place there.")
    name: str = Field(description="The hero's name.")
    team: int = Field(description="0 Radiant, 1 Dire.")
    who: str | None = Field(description="Whose it is: the name of a token; null: the agent's.")
    held: bool = Field(description="Whether that person plays it now; else the agent does.")


class PlayedGame(BaseModel):
    """A game that people play."""

    model_config = ConfigDict(json_schema_extra={"examples": [_STATE]})

    game: str = Field(description="Its id.")
    opened_by: str = Field(description="Whose token opened it.")
    opened_at: float = Field(description="When, seconds since the epoch.")
    players: list[str] = Field(description="Who plays each side where no person does.")
    time: float = Field(description="Seconds since the horn.")
    frame: int = Field(description="Engine frames since the start, 30 a second.")
    running: bool = Field(description="Whether its clock runs; it stands while the run is paused.")
    winner: int = Field(description="0 nobody yet, 1 Radiant, 2 Dire, 3 nobody: a draw.")
    version: int = Field(description="The newest version in it, pinned when it was opened; -1: bots alone.")
    late: int = Field(description="Timesteps for which the agents' answer came too late; they kept their orders.")
    late_frames: int = Field(description="Engine frames that began late.")
    delay_ms: float = Field(description="Milliseconds that the agents' last answer took.")
    watching: int = Field(description="Who is connected, spectators included.")
    seats: list[Seat] = Field(description="All heroes.")


class PlayedGames(BaseModel):
    """Games that people play now."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"games": [_STATE]}]})

    games: list[PlayedGame] = Field(description="Oldest first.")


class PlayOffer(BaseModel):
    """What can be played."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "server": True, "why": "", "mode": "5v5", "patch": "7.21d", "heroes_per_team": 5, "heroes": ["sniper"],
        "versions": [120, 100], "bots": ["random", "scripted-easy", "scripted", "scripted-hard"], "games_at_once": 1,
        "spectator_delay_seconds": 120.0, "games": []}]})

    server: bool = Field(description="Whether a play service answers.")
    why: str = Field(description="Why no game can be opened now; '' when one can.")
    mode: str = Field("", description="What is played.")
    patch: str = Field("", description="By which game data.")
    heroes_per_team: int = Field(0, description="Heroes of a team.")
    heroes: list[str] = Field([], description="The pool that line-ups are drawn from.")
    versions: list[int] = Field([], description="Versions that can be played with or against, the newest few.")
    bots: list[str] = Field([], description="Bots that can be.")
    games_at_once: int = Field(0, description="Games that may be played at once.")
    spectator_delay_seconds: float = Field(0.0, description="How late spectators see a game.")
    games: list[PlayedGame] = Field([], description="Those that are being played.")


class RecordedGame(BaseModel):
    """A played game that can be watched again."""

    model_config = ConfigDict(json_schema_extra={"examples": [_RECORDED]})

    game: str = Field(description="Its id: GET /v1/play/recordings/{game} has its bytes.")
    bytes: int = Field(description="Its size.")
    players: list[str] = Field(description="Who played each side: people, and who had its other heroes.")
    people: list[str] = Field(description="The people in it.")
    seconds: float = Field(description="Seconds since the horn at its end.")
    at: float = Field(description="When it ended, seconds since the epoch.")
    winner: int = Field(description="0 nobody, 1 Radiant, 2 Dire, 3 a draw.")
    kills: list[int] = Field(description="Kills of each side.")


class RecordedGames(BaseModel):
    """Played games that can be watched again."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"recordings": [_RECORDED]}]})

    recordings: list[RecordedGame] = Field(description="The newest first.")


class GameWish(BaseModel):
    """A game to be opened."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{
        "team": 0, "heroes": [0], "lineup": None, "with": "agent", "against": "newest", "seed": None}]})

    team: int = Field(0, ge=0, le=1, strict=True, description="Your side: 0 Radiant, 1 Dire.")
    heroes: list[Annotated[int, Field(ge=0, le=4, strict=True)]] = Field(
        [0], min_length=1, max_length=5, description="Which of its heroes are yours, from 0.")
    lineup: list[Annotated[list[HeroName], Field(min_length=1, max_length=5)]] | None = Field(
        None, min_length=2, max_length=2, description="Heroes of both teams; null: drawn from the pool.")
    mates: str = Field("agent", alias="with", pattern=WHO, description="Who plays your side's other heroes, and yours "
                       "while you are away: agent (the newest version), a version's number, or a bot.")
    against: str = Field("newest", pattern=WHO, description="Who plays the other side: newest, a version's number, or "
                         "a bot.")
    seed: int | None = Field(None, ge=0, le=2**53 - 1, strict=True, description="The game's seed; null: any.")


class Opened(BaseModel):
    """A game that was opened."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "game": _STATE["game"], "seat": _SEAT, "seats": [_SEAT]}]})

    game: str = Field(description="Its id. /v1/play/games/{game}/socket is the way in (docs/play.md).")
    seat: Seat = Field(description="Your first hero.")
    seats: list[Seat] = Field(description="All of yours; they are the agent's until you join.")


class Ended(BaseModel):
    """A game that was ended."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"game": _STATE["game"]}]})

    game: str = Field(description="Its id.")


class Person(BaseModel):
    """A person's rating."""

    model_config = ConfigDict(json_schema_extra={"examples": [_PERSON]})

    name: str = Field(description="The name of his token.")
    mu: float = Field(description="TrueSkill's mean, in points of the run's ladder: random play is 0.")
    sigma: float = Field(description="Its uncertainty, one standard deviation.")
    won: int = Field(description="Games won.")
    lost: int = Field(description="Games lost.")
    drawn: int = Field(description="Games drawn.")
    abandoned: int = Field(description="Games that he left, or that ended without a result. They move no rating.")
    last_at: float = Field(description="When the last one ended, seconds since the epoch.")


class People(BaseModel):
    """Ratings of people, kept apart from those of versions."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ratings": [_PERSON]}]})

    ratings: list[Person] = Field(description="The strongest first.")


def _client(here: Context) -> PlayClient:
    if here.play is None:
        raise Problem(409, "this run has no play service (services.play.enabled)")
    return here.play()


async def _asked(call: Awaitable[T]) -> T:
    """What the play service answers, with its refusals as problems."""
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
        raise Problem(503, f"the play service does not answer: {failure.details}", headers={"Retry-After": "2"}
                      ) from None


@router.get("/play")
async def play(caller: Viewer, here: Here) -> PlayOffer:
    """What can be played: heroes, versions, bots; and whether there is a play service at all."""
    if here.play is None:
        return PlayOffer(server=False, why="this run has no play service (services.play.enabled)")
    try:
        offer = await here.play().offer(ASK_SECONDS)
        games = await here.play().games(ASK_SECONDS)
    except CallFailed as failure:
        return PlayOffer(server=False, why=f"the play service does not answer: {failure.details}")
    return PlayOffer(
        server=True, why=offer.refused, mode=offer.mode, patch=offer.patch, heroes_per_team=offer.heroes_per_team,
        heroes=list(offer.hero_pool), versions=list(offer.versions), bots=list(offer.bots), games_at_once=offer.games,
        spectator_delay_seconds=offer.spectator_delay_seconds, games=[_game(state) for state in games])


def _game(state: Any) -> PlayedGame:
    return PlayedGame.model_validate(state_of(state))


@router.get("/play/games", responses=responses(_409="This run has no play service."))
async def played_games(caller: Viewer, here: Here) -> PlayedGames:
    """Games that people play now."""
    return PlayedGames(games=[_game(state) for state in await _asked(_client(here).games(ASK_SECONDS))])


@router.post("/play/games", status_code=201, responses={
    201: {"headers": {"Location": {"description": "The game.", "schema": {"type": "string"}}}},
    **responses(_409=AWAY, _429="As many games are played as may be, or too many requests.")})
async def open_game(caller: Operator, here: Here, body: GameWish, response: Response) -> Opened:
    """Opens a game at real speed in which you have heroes. They are the agent's until you join."""
    answer = await _asked(_client(here).open(caller.name, body.team, body.heroes, body.lineup, body.mates,
                                             body.against, body.seed))
    mine = [Seat.model_validate(seat) for seat in state_of(answer.state)["seats"] if seat["who"] == caller.name]
    response.headers["Location"] = f"/v1/play/games/{answer.game}"
    return Opened(game=answer.game, seat=mine[0], seats=mine)


@router.get("/play/games/{game}", responses=responses(_404=NONE, _409="This run has no play service."))
async def played_game(caller: Viewer, here: Here, game: GameId) -> PlayedGame:
    """One game, and who sits where."""
    for state in await _asked(_client(here).games(ASK_SECONDS)):
        if state.game == game:
            return _game(state)
    raise Problem(404, f"game {game} is not being played, or not any more")


@router.delete("/play/games/{game}", responses=responses(_404=NONE, _409=AWAY))
async def end_game(caller: Operator, here: Here, game: GameId) -> Ended:
    """Ends a game without a result: it counts as abandoned."""
    await _asked(_client(here).close_game(game, caller.name))
    return Ended(game=game)


@router.get("/play/recordings", responses=responses(_409=AWAY))
async def recorded_games(caller: Viewer, here: Here) -> RecordedGames:
    """Played games that are over and can be watched again: the newest."""
    found = await _asked(_client(here).recordings(ASK_SECONDS))
    return RecordedGames(recordings=[RecordedGame(
        game=r.game, bytes=r.size, players=list(r.players), people=list(r.people), seconds=round(r.seconds, 1), at=r.at,
        winner=r.winner, kills=list(r.kills)) for r in found])


@router.get("/play/recordings/{game}", response_class=Response, responses={
    200: {"description": "The recording.", "content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}},
    **responses(_404="No recording of it is kept, or not any more.", _409=AWAY)})
async def recorded_game(caller: Viewer, here: Here, game: GameId) -> Response:
    """A played game's recording: the whole game, as spectators saw it."""
    return Response(await _asked(_client(here).recording(game)), media_type=BYTES, headers=HEADERS)


@router.get("/play/ratings")
def people_ratings(caller: Viewer, here: Here) -> People:
    """Ratings of people. No game of theirs moves a version's rating or the league."""
    rows = here.state.table("people").all().values()
    found = [Person.model_validate(row) for row in rows]
    return People(ratings=sorted(found, key=lambda p: (-p.mu, p.name)))


@router.websocket("/play/games/{game}/socket")
async def socket(socket: WebSocket, game: str, spectate: bool = False,
                 hero: Annotated[list[int] | None, Query()] = None) -> None:
    """A person's way into a game: docs/play.md has what goes over it. The boundary has let the caller in."""
    here: Context = socket.app.state.context
    caller: Caller = socket.state.caller
    if (here.play is None or here.sockets >= here.limits.players or len(game) != 32
            or (caller.role < Role.OPERATOR and not spectate)):
        await socket.close(1008)  # before it is accepted: HTTP 403
        return
    here.sockets += 1
    try:
        await socket.accept()
        wanted = [h for h in hero or () if 0 <= h <= 9]
        await Socket(socket, here.play().join(game, caller.name, spectate, wanted), socket.state.still).run()
    finally:
        here.sockets -= 1
