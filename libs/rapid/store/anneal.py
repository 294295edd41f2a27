"""The change that is being annealed into a run's games: a document with compare-and-set, and the guard's pairs.

Here the document is JSON; `five.agent.anneal` gives it its meaning.
"""

import json
from collections.abc import Callable
from typing import Any

from rapid.store.events import event_fields
from rapid.store.rows import read_json
from rapid.store.state import RunState
from rapid.store.tables import Table
from rapid.store.transaction import transaction

PAIRS_TABLE = "guard"  # pairs of games that the guard has played
Json = Any
Edit = Callable[[Json], tuple[Json, str, dict[str, Json]] | None]


class AnnealStore:
    """The anneal of one run. Blocking; safe to share between threads."""

    def __init__(self, state: RunState) -> None:
        self._state = state

    def read(self) -> Json:
        """Return the document; None when nothing was ever annealed."""
        text: Any = self._state.redis.get(self._state.keys.anneal)
        return None if text is None else read_json(text, self._state.keys.anneal)

    def change(self, edit: Edit, who: str) -> bool:
        """Apply ``edit`` to the document (None: there is none) and add an event, in one atomic step.

        ``edit`` returns the new document, the event's name and its details, or None to change nothing. It may be called
        again after a concurrent write. Its exceptions reach the caller. Returns whether anything was written.
        """
        keys = self._state.keys

        def attempt(pipeline: Any) -> bool:
            text = pipeline.get(keys.anneal)
            made = edit(None if text is None else read_json(text, keys.anneal))
            pipeline.multi()
            if made is None:
                return False
            document, what, details = made
            pipeline.set(keys.anneal, json.dumps(document, allow_nan=False))
            pipeline.xadd(self._state.events.appended_key, event_fields(who, what, details))
            return True

        return bool(transaction(self._state.redis, keys, attempt, keys.anneal))

    def pairs(self) -> Table:
        """Return the table of the guard's pairs by name, written by the evaluator."""
        return self._state.table(PAIRS_TABLE)
