"""Draft table of an archived version: the win heads of both teams evaluate the first observation of each line-up."""

import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from dota.config import GameConfig
from five.agent.compute import torch_threads
from five.agent.draft.leaves import Floats, HeroPool, Ints, LeafTable
from five.agent.model.policy import Policy
from five.evaluation.line_up_values import BATCH, LineUpReader, PerGameReader, factored_reader
from five.run import draft_tables
from five.run.line_ups import METHOD
from rapid.atomic_file import replacing

log = logging.getLogger(__name__)
CHUNK = 4096  # line-ups between two checks of the time
SAVE_SECONDS = 60.0  # interval at which an unfinished table is saved


def make(policy: Policy, game: GameConfig, pool: HeroPool, facts: dict[str, Any], *, threads: int = 1,
         partial: Path | None = None, on_progress: Callable[[int, float], None] = lambda done, seconds: None,
         batch: int = BATCH) -> LeafTable:
    """Return the table of all line-ups of ``pool``, computed by ``threads`` workers and equal for any number of them.

    ``facts`` are stored with the table; ``batch`` line-ups are evaluated in one forward pass. An unfinished table is
    saved to ``partial`` once a minute and resumed; a partial table of another version or pool is discarded. If it
    cannot be saved, as on a full disk, the computation goes on with a warning. The caller removes the file once the
    whole table is stored. ``on_progress`` receives the line-ups done in this call and the seconds spent on them.
    """
    about = {**facts, **METHOD}
    win = _load_partial(partial, pool, about)
    todo = np.flatnonzero(np.isnan(win))
    chunks = [todo[at:at + CHUNK] for at in range(0, len(todo), CHUNK)]
    began = saved = time.monotonic()
    readers: SimpleQueue[LineUpReader] = SimpleQueue()

    def work(leaves: Ints) -> tuple[Ints, Floats]:
        reader = readers.get()
        try:
            return leaves, reader.read(leaves)
        finally:
            readers.put(reader)

    done = 0
    with torch_threads(1), ThreadPoolExecutor(threads) as pool_of_threads:
        parts = factored_reader(policy, game, pool, batch)
        for _ in range(threads):
            readers.put(parts or PerGameReader(policy, game, pool, batch))
        try:
            for leaves, found in pool_of_threads.map(work, chunks):
                win[leaves] = found
                done += len(leaves)
                now = time.monotonic()
                on_progress(done, now - began)
                if partial is not None and now - saved > SAVE_SECONDS:
                    _save_partial(partial, LeafTable(pool, win.reshape(pool.shape), about))
                    saved = now
        except BaseException:
            pool_of_threads.shutdown(cancel_futures=True)
            if partial is not None and done:
                _save_partial(partial, LeafTable(pool, win.reshape(pool.shape), about))
            raise
    return LeafTable(pool, win.reshape(pool.shape), {**about, "at": time.time()})


def _load_partial(partial: Path | None, pool: HeroPool, about: dict[str, Any]) -> Floats:
    if partial is not None and partial.exists():
        try:
            found = draft_tables.parse(partial.read_bytes())
            if found.pool == pool and found.facts == json.loads(json.dumps(about)):
                return found.win.reshape(-1).copy()
        except ValueError:
            pass  # start again
    return np.full(pool.line_ups, np.nan, np.float32)


def _save_partial(partial: Path, leaves: LeafTable) -> None:
    try:
        partial.parent.mkdir(parents=True, exist_ok=True)
        with replacing(partial) as file:
            for piece in draft_tables.serialize(leaves):
                file.write(piece)
    except OSError as error:
        log.warning("unfinished draft table not saved; an interruption would lose the line-ups since the last save "
                    "path=%s: %s", partial, error.strerror or error)
