"""Routes for games in progress and recordings. Both use the format of docs/replays.md."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Annotated, Any

import redis
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.games.live_hub import GameFeed
from five.services.controller.http.dependencies import Context, ContextDep, Viewer
from five.services.controller.http.problems import Problem, blob_store_errors, responses
from five.services.controller.http.slots import ReleasingResponse
from rapid.blobs import BlobMissing
from rapid.store.errors import Corrupt

router = APIRouter(tags=["games"])
BYTES = "application/octet-stream"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"}
GameId = Annotated[str, Path(pattern=r"^[0-9a-f]{8,64}$", description="A game's id.")]
ReplayName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$", description="A recording's name.")]


class GamesInProgress(BaseModel):
    """Games in progress."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"games": [{
        "game": "9f2c1d00a1b2c3d4e5f60718293a4b5c", "source": "rollout/0", "players": ["newest", "version-1200"],
        "kind": "training", "kills": [4, 2], "net_worth": [14200, 12100], "time": 412.5, "wall_seconds": 120.2,
        "watched": 1}]}]})

    games: list[dict[str, Any]] = Field(description="Each game's id, source, players and score, as last reported "
                                        "by its source. Treat names as text.")


class ReplayEntry(BaseModel):
    """A recording."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "name": "version-1200", "bytes": 4210000, "facts": {
            "players": ["version-1200", "scripted"], "seconds": 1830.0, "winner": 0, "at": 1789000000.0}}]})

    name: str = Field(description="Its name, for GET /v1/replays/{name}.")
    bytes: int = Field(description="Its size in bytes.")
    facts: dict[str, Any] = Field(description="Players, length and winner, as far as known.")


class RecordingList(BaseModel):
    """The recordings of the run."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"replays": []}]})

    replays: list[ReplayEntry] = Field(description="The recordings, newest first.")


@router.get("/games")
async def games(caller: Viewer, context: ContextDep) -> GamesInProgress:
    """Return the games in progress of up to 16 sources. Sources list their games only while somebody asks, so the first
    response after an idle period may be empty."""
    return GamesInProgress(games=await context.live_hub.games())


async def _stream_game(context: Context, request: Request, feed: GameFeed, after: int) -> AsyncIterator[bytes]:
    """Yield the game's bytes until it ends or the caller is no longer valid."""
    revalidate = request.state.revalidate
    try:
        async for piece in context.live_hub.chunks(feed, after, heartbeat=5.0):
            if piece:
                yield piece
            try:
                await asyncio.to_thread(revalidate)  # revoking a token ends its streams
            except redis.RedisError:
                pass  # unknown while the store is unavailable; checked again
    except Problem:
        return


@router.get("/games/{game}/live", response_class=StreamingResponse, responses={
    200: {"description": "A growing recording: its header, the buffered chunks, new chunks as they arrive, and "
          "FVEN when the game is over.", "content": {BYTES: {"schema": {
              "type": "string", "format": "binary"}}}},
    **responses(_404="This game is not being played.", _429="Too many viewers or requests.")})
async def live(caller: Viewer, context: ContextDep, request: Request, game: GameId, after: Annotated[int, Query(
        ge=0, le=1 << 31, description="Number of the first chunk to send, if it is buffered.")] = 0
               ) -> StreamingResponse:
    """Stream a live game as bytes."""
    with ExitStack() as held:
        held.enter_context(context.live_slots.take(caller))
        feed = context.live_hub.watch(game)
        if feed is None:
            raise Problem(429, "the maximum number of watched games is reached: try again later",
                          headers={"Retry-After": "10"})
        held.callback(context.live_hub.leave, feed)
        if not await context.live_hub.wait_for_header(feed):
            raise Problem(404, f"game {game} is not being played")
        return ReleasingResponse(_stream_game(context, request, feed, after), held.pop_all().close, media_type=BYTES,
                                 headers=HEADERS)


@router.get("/replays")
async def replays(caller: Viewer, context: ContextDep) -> RecordingList:
    """Return the recordings of rated games and matches."""
    with blob_store_errors():
        found = await context.read_blobs(context.recordings.all)
    return RecordingList(replays=[ReplayEntry.model_validate(entry) for entry in found])


@router.get("/replays/{name}", response_class=Response, responses={
    200: {"description": "The recording.", "content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}},
    **responses(_404="There is no such recording.")})
async def replay(caller: Viewer, context: ContextDep, name: ReplayName) -> Response:
    """Return a recording's bytes: a live game's stream plus an index at its end."""
    try:
        with blob_store_errors():
            data = await context.read_blobs(context.recordings.read, name)
    except BlobMissing:
        raise Problem(404, f"there is no recording {name!r}; GET /v1/replays lists all") from None
    except Corrupt as error:
        raise Problem(404, f"recording {name!r} is unreadable: {error}") from None
    return Response(data, media_type=BYTES, headers=HEADERS)
