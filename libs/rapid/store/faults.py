"""Services that keep failing while the run goes on without them, reported by the supervisor that restarts them."""

import json
from collections.abc import Mapping
from typing import Any

from rapid.store.rows import read_json
from rapid.store.state import RunState

_FIELD = "faults"  # of the run's documents


def report_faults(state: RunState, who: str, faults: Mapping[str, str]) -> None:
    """Replace the reported faults: reasons by the names of processes. Append an event for each change."""
    known = read_faults(state)
    if faults:
        state.redis.hset(state.keys.documents, _FIELD, json.dumps(dict(faults)))
    elif known:
        state.redis.hdel(state.keys.documents, _FIELD)
    for name in faults.keys() - known.keys():
        state.events.append(who, "service.failing", {"service": name, "reason": faults[name]})
    for name in known.keys() - faults.keys():
        state.events.append(who, "service.recovered", {"service": name})


def read_faults(state: RunState) -> dict[str, str]:
    """Return the reported faults."""
    text: Any = state.redis.hget(state.keys.documents, _FIELD)
    found: dict[str, str] = {} if text is None else read_json(text, f"{state.keys.documents} {_FIELD}")
    return found
