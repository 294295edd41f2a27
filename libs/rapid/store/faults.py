"""Services that keep failing while the run goes on without them, reported by the supervisor that restarts them."""

import json
from collections.abc import Mapping
from typing import Any

from rapid.store.errors import Corrupt
from rapid.store.rows import decode_row
from rapid.store.state import RunState

_FIELD = "faults"  # of the run's documents


def report_faults(state: RunState, who: str, faults: Mapping[str, str]) -> None:
    """Replace the reported faults: reasons by the names of processes. Append an event for each change."""
    try:
        known = read_faults(state)
    except Corrupt:  # replaced below: this report is complete
        known = {}
        state.redis.hdel(state.keys.documents, _FIELD)
    if faults:
        state.redis.hset(state.keys.documents, _FIELD, json.dumps(dict(faults)))
    elif known:
        state.redis.hdel(state.keys.documents, _FIELD)
    for name in faults.keys() - known.keys():
        state.events.append(who, "service.failing", {"service": name, "reason": faults[name]})
    for name in known.keys() - faults.keys():
        state.events.append(who, "service.recovered", {"service": name})


def read_faults(state: RunState) -> dict[str, str]:
    """Return the reported faults. Raise Corrupt for a damaged report."""
    text: Any = state.redis.hget(state.keys.documents, _FIELD)
    return {} if text is None else decode_row(text, f"{state.keys.documents} {_FIELD}", lambda row: {
        str(name): str(reason) for name, reason in row.items()})
