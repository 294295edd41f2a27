"""Heartbeats of services in Redis."""

import json
import time

import redis

from rapid.store.keys import Keys
from rapid.store.leases import Instance


def save_heartbeat(client: redis.Redis, beat: Instance) -> None:
    """Store a heartbeat of the run "trial" as services write it."""
    keys = Keys("trial")
    client.set(keys.lease(beat.kind, beat.id), json.dumps(beat._asdict()), px=60_000)
    client.zadd(keys.leases(beat.kind), {beat.id: (time.time() + 60) * 1000})
