"""FastAPI dependencies of the route handlers: the run's context and the caller."""

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, TypeVar

from fastapi import Depends, Header, Query, Request, Security
from fastapi.security import HTTPBearer

from five.agent.config import SchedulesConfig
from five.agent.schedules import load_schedules
from five.clients.play import PlayClient
from five.run.config import RunConfig
from five.run.config.controller import LimitsConfig
from five.run.effective import ConfigDifference, drift
from five.services.controller.console.curves import Curves
from five.services.controller.console.sessions import Sessions
from five.services.controller.console.static_files import ConsoleSite
from five.services.controller.console.timeline import Timeline
from five.services.controller.games.drafts import DraftAnalyzer
from five.services.controller.games.live_hub import LiveHub
from five.services.controller.games.recordings import RecordingReader
from five.services.controller.http.auth import Authenticator, Caller
from five.services.controller.http.host_names import HostNames
from five.services.controller.http.single_flight import SingleFlightCache
from five.services.controller.http.slots import SlotPool
from five.services.controller.operations.store import OperationStore
from five.services.controller.run.ratings import RatingTable
from rapid.blobs import BlobStore
from rapid.store.leases import Leases
from rapid.store.live_channel import LiveChannel
from rapid.store.parameters import ParameterStore
from rapid.store.record import RunRecord
from rapid.store.series import Series
from rapid.store.state import RunState

# Maximum ages of the console's cached data, shared by all clients.
QUICK_SECONDS, SLOW_SECONDS = 1.0, 4.0
BLOB_READERS = 8  # threads
T = TypeVar("T")


class Context:
    """The run that an application serves, in ``app.state.context``; shared by all routers.

    ``configured`` are the configuration's schedules. ``evaluator`` tells whether matches can be played.
    ``overview_seconds`` is the maximum age of a cached status. ``blobs`` holds the checkpoints. ``play`` creates the
    client of the play service, once, in the server's event loop; None without a play service. ``path_prefix`` is the
    path at which a reverse proxy serves the application, ``hosts`` are the names of its address.
    """

    def __init__(self, run: str, state: RunState, store: ParameterStore, configured: SchedulesConfig,
                 authenticator: Authenticator, limits: LimitsConfig | None = None, evaluator: bool = True,
                 file_config: RunConfig | None = None, overview_seconds: float = 0.0,
                 blobs: BlobStore | None = None, play: Callable[[], PlayClient] | None = None,
                 path_prefix: str = "", hosts: HostNames | None = None) -> None:
        self.run = run
        self.state = state
        self.store = store
        self.authenticator = authenticator
        self.limits = limits or LimitsConfig()
        self.evaluator = evaluator
        self.hosts = hosts or HostNames()
        limit = self.limits
        self.stream_slots = SlotPool(limit.streams, limit, "streams", "streams are open")
        self.live_slots = SlotPool(limit.viewers, limit, "viewers", "viewers watch live games")
        self.spectator_slots = SlotPool(limit.spectators, limit, "spectators", "spectators watch games of people")
        self.player_slots = SlotPool(limit.players, limit, "players", "people play")
        self.draft_slots = SlotPool(limit.drafts, limit, "drafts", "drafts are being analysed", retry_seconds=1)
        self.overview_cache: SingleFlightCache[object] = SingleFlightCache(overview_seconds)
        self.leases = Leases(state.redis, run)
        self.series = Series(state.redis, run)
        self.ratings = RatingTable(state)
        self.operations = OperationStore(state)
        self.configured = configured
        self.blobs = blobs
        self.path_prefix = path_prefix
        self.site = ConsoleSite(path_prefix=path_prefix)
        self.sessions = Sessions(state.redis, run, authenticator, self.limits)
        self.curves = Curves(self.series)
        self.timeline = Timeline(state.events, self.series)
        self.fast_parts_cache: SingleFlightCache[dict[str, str]] = SingleFlightCache(QUICK_SECONDS)
        self.slow_parts_cache: SingleFlightCache[dict[str, str]] = SingleFlightCache(SLOW_SECONDS)
        self.live_hub = LiveHub(LiveChannel(state.redis, run), self.leases)
        self.recordings = RecordingReader(lambda: self.blobs, run)
        self.drafts = DraftAnalyzer(run, lambda: self.blobs, self.series)
        self.play = None if play is None else functools.cache(play)
        self.file_config = file_config
        self._blob_readers = ThreadPoolExecutor(BLOB_READERS, "blob-reader")

    async def read_blobs(self, read: Callable[..., T], *arguments: object) -> T:
        """Call ``read`` in a thread for the blob store. A bucket that is away takes a minute to fail: in the threads of
        the event loop, or of other routes, such reads would stop the controller's other tasks."""
        return await asyncio.get_running_loop().run_in_executor(self._blob_readers, read, *arguments)

    def drift(self, record: RunRecord) -> list[ConfigDifference]:
        """Return the differences between this controller's configuration file and the run's record, which takes
        precedence."""
        return [] if self.file_config is None else drift(self.file_config, record)

    def require_usable(self, schedules: SchedulesConfig) -> None:
        """Raise ValueError for schedules that the configuration would refuse, such as games from the middle where no
        game can be snapshotted."""
        if self.file_config is not None:
            RunConfig.model_validate({**dict(self.file_config), "schedules": schedules})

    def schedules(self) -> SchedulesConfig:
        """Return the schedules in force: those set at run time, otherwise the configuration's."""
        changed = self.state.schedules()
        return load_schedules(changed) if changed is not None else self.configured

    def hero_steps(self) -> int:
        """Return the hero-steps that the run had received at its newest version."""
        record = self.series.last("versions")
        return 0 if record is None else int(record.values.get("hero_steps", 0))


_bearer = HTTPBearer(scheme_name="token", description="A named token: `five token new NAME --role viewer|operator`.",
                     auto_error=False)


def _context(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


def _viewer(request: Request, declared: Annotated[object, Security(_bearer)]) -> Caller:
    caller: Caller = request.state.caller  # set by the middleware
    return caller


def _operator(
    caller: Annotated[Caller, Depends(_viewer)], request: Request,
    key: Annotated[str | None, Header(
        alias="Idempotency-Key", min_length=1, max_length=128, pattern=r"^[\x21-\x7e]+$",
        description="Any text, unique to a change: a request repeated with the same key is carried out once and "
        "gets the same response. Valid for a day.")] = None,
) -> Caller:
    _context(request).authenticator.require_operator(caller)
    return caller


ContextDep = Annotated[Context, Depends(_context)]
# The authenticated caller, with at least that role.
Viewer = Annotated[Caller, Depends(_viewer)]
Operator = Annotated[Caller, Depends(_operator)]
DryRun = Annotated[bool, Query(description="Only report what would happen; change nothing.")]
