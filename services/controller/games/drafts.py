"""Drafts as the controller answers them: tables and training games are read once, a tree is solved once."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from dota.registry import load
from five.agent.draft.advice import Advice, advise
from five.agent.draft.briefing import brief
from five.agent.draft.evidence import EVIDENCE_GAMES, Evidence, Reliability
from five.agent.draft.leaves import Leaves
from five.run.drafting import DraftTables
from rapid.blobs import BlobMissing, BlobStore
from rapid.store.series import Series

PAGE = 1000  # records of games read at a time
KEPT_TABLES = 2
KEPT_ADVICE = 256


class Drafts:
    """Of one run. Blocking; safe to share between threads, of which one at a time solves."""

    def __init__(self, run: str, blobs: Callable[[], BlobStore | None], series: Series) -> None:
        self._run = run
        self._blobs = blobs
        self._series = series
        self._lock = threading.Lock()
        self._leaves: OrderedDict[str, Leaves] = OrderedDict()  # by digest
        self._advice: OrderedDict[tuple[Any, ...], Advice] = OrderedDict()  # by table's digest, picks, bans, order
        self._evidence: Evidence | None = None
        self._last = ""  # id of the last game that was counted

    @property
    def _tables(self) -> DraftTables | None:
        blobs = self._blobs()
        return None if blobs is None else DraftTables(blobs, self._run)

    def tables(self) -> list[dict[str, Any]]:
        """``name``, ``heroes``, ``team``, ``shared`` and ``facts`` of each table, the newest version's first."""
        tables, found = self._tables, []
        if tables is None:
            return []
        for name in tables.names():
            try:
                found.append({"name": name, **tables.about(name)})
            except (BlobMissing, ValueError):
                continue  # it is being removed, or is none
        return found

    def draft(self, name: str | None, radiant: Sequence[str], dire: Sequence[str], banned: Sequence[str], order: str
              ) -> dict[str, Any]:
        """A draft by the table of that name, the newest one without: `five.agent.draft.briefing.brief` with ``table``.
        Raises BlobMissing when there is none, five.agent.draft.order.DraftError for a draft that cannot be."""
        tables = self._tables
        if tables is None:
            raise BlobMissing("this controller has no blob store")
        if name is None:
            name = next(iter(tables.names()), None)
            if name is None:
                raise BlobMissing("no version's table has been made yet: `five draft --make` makes one, and the "
                                  "evaluator does so for rated versions whose pool is small")
        with self._lock:
            digest = tables.digest(name)
            leaves = self._table(tables, name, digest)
            key = digest, *(tuple(sorted(names)) for names in (radiant, dire, banned)), order
            if key not in self._advice:
                self._advice[key] = advise(leaves, radiant, dire, banned, order)
                while len(self._advice) > KEPT_ADVICE:
                    self._advice.popitem(last=False)
            found = brief(leaves, self._counted(), self._advice[key], radiant, dire, banned)
            return {**found, "table": name}

    def reliability(self) -> Reliability:
        """How often the win head was right about recorded training games, up to now."""
        with self._lock:
            return self._counted().reliability()

    def _table(self, tables: DraftTables, name: str, digest: str) -> Leaves:
        if digest not in self._leaves:
            self._leaves[digest] = tables.read(name)
            while len(self._leaves) > KEPT_TABLES:
                self._leaves.popitem(last=False)
        self._leaves.move_to_end(digest)
        return self._leaves[digest]

    def _counted(self) -> Evidence:
        if self._evidence is None:
            evidence = Evidence(load().heroes)
            newest, before = "", ""
            for _ in range(EVIDENCE_GAMES // PAGE):
                page = self._series.latest("games", PAGE, before)
                for record in page:
                    evidence.add(record.values)
                if page:
                    newest, before = newest or page[0].id, page[-1].id
                if len(page) < PAGE:
                    break
            self._evidence, self._last = evidence, newest
        while page := self._series.following("games", self._last, PAGE):
            for record in page:
                self._evidence.add(record.values)
            self._last = page[-1].id
        return self._evidence
