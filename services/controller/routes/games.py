"""Games in progress, and recordings: what the console's viewer shows. Both are the same bytes (docs/replays.md)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

import redis
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.games.live_hub import View
from five.services.controller.http.dependencies import Context, Here, Viewer
from five.services.controller.http.problems import Problem, responses
from rapid.blobs import BlobMissing

router = APIRouter(tags=["games"])
BYTES = "application/octet-stream"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"}
GameId = Annotated[str, Path(pattern=r"^[0-9a-f]{8,64}$", description="A game's id.")]
ReplayName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$", description="A recording's name.")]


class GamesInProgress(BaseModel):
    """Games that are being played now."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"games": [{
        "game": "9f2c1d00a1b2c3d4e5f60718293a4b5c", "source": "rollout/0", "players": ["newest", "version-1200"],
        "kind": "training", "kills": [4, 2], "net_worth": [14200, 12100], "time": 412.5, "wall_seconds": 120.2,
        "watched": 1}]}]})

    games: list[dict[str, Any]] = Field(description="Each with its id, its source, who plays each side, and how it "
                                        "stands, as its source last said. Names are shown as text.")


class ReplayEntry(BaseModel):
    """A recording."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "name": "version-1200", "bytes": 4210000, "facts": {
            "players": ["version-1200", "scripted"], "seconds": 1830.0, "winner": 0, "at": 1789000000.0}}]})

    name: str = Field(description="Its name: GET /v1/replays/{name} has its bytes.")
    bytes: int = Field(description="Its size.")
    facts: dict[str, Any] = Field(description="Who played, how long, and who won, as far as it is known.")


class Replays(BaseModel):
    """All recordings."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"replays": []}]})

    replays: list[ReplayEntry] = Field(description="The newest first.")


@router.get("/games")
async def games(caller: Viewer, here: Here) -> GamesInProgress:
    """Games in progress, of up to 16 of the run's sources. Sources list their games while somebody asks: the first
    answer after a while may be empty."""
    return GamesInProgress(games=await here.relay.games())


async def _follow(here: Context, request: Request, view: View, after: int) -> AsyncIterator[bytes]:
    """The game's bytes, until it ends or the caller's right does."""
    still = request.state.still
    try:
        async for piece in here.relay.chunks(view, after, heartbeat=5.0):
            if piece:
                yield piece
            try:
                await asyncio.to_thread(still)  # one that was revoked ends its streams
            except redis.RedisError:
                pass  # nobody knows: it is asked again
    except Problem:
        return
    finally:
        here.relay.leave(view)


@router.get("/games/{game}/live", response_class=StreamingResponse, responses={
    200: {"description": "A recording that still grows: its header, the chunks that are kept of it, then each as it "
          "comes, and FVEN when the game is over.", "content": {BYTES: {"schema": {
              "type": "string", "format": "binary"}}}},
    **responses(_404="Nobody plays this game, or not any more.", _429="Too many watch, or too many requests.")})
async def live(caller: Viewer, here: Here, request: Request, game: GameId, after: Annotated[int, Query(
        ge=0, le=1 << 31, description="Number of the first chunk wanted, of those that are kept.")] = 0
               ) -> StreamingResponse:
    """A live game, as a stream of bytes."""
    if here.relay.full:
        raise Problem(429, "as many watch live games as may (services.controller.limits.viewers)",
                      headers={"Retry-After": "10"})
    view = here.relay.watch(game)
    if view is None:
        raise Problem(429, "as many games are watched as may be", headers={"Retry-After": "10"})
    if not await here.relay.begun(view):
        here.relay.leave(view)
        raise Problem(404, f"game {game} is not being played, or not any more")
    return StreamingResponse(_follow(here, request, view, after), media_type=BYTES, headers=HEADERS)


@router.get("/replays")
async def replays(caller: Viewer, here: Here) -> Replays:
    """Recordings of rated games and matches."""
    found = await asyncio.to_thread(here.recordings.all)
    return Replays(replays=[ReplayEntry.model_validate(entry) for entry in found])


@router.get("/replays/{name}", response_class=Response, responses={
    200: {"description": "The recording.", "content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}},
    **responses(_404="There is no such recording.")})
async def replay(caller: Viewer, here: Here, name: ReplayName) -> Response:
    """A recording's bytes: what a live game's stream gives, with an index at its end."""
    try:
        data = await asyncio.to_thread(here.recordings.read, name)
    except BlobMissing:
        raise Problem(404, f"there is no recording {name!r}") from None
    return Response(data, media_type=BYTES, headers=HEADERS)
