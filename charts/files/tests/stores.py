"""Test of both Redis servers: they require a password, and their persistence settings match their role.

usage: stores.py CONFIG SECONDS     users and password files from FIVE_STATE_USER and so on, as in services
"""

import sys
import time

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from five.run.load import load
from rapid.store.connection import connect


def wait(client, role, seconds):
    """Wait until the server answers. Exit with the reason after ``seconds``."""
    end = time.monotonic() + seconds
    while True:
        try:
            client.ping()
            return
        except redis.RedisError as error:
            if time.monotonic() > end:
                sys.exit(f"the {role} Redis does not answer after {seconds:g} s: {error}")
            time.sleep(1)


def refuses_strangers(client):
    """Return whether the server refuses connections without a password."""
    options = {**client.connection_pool.connection_kwargs, "username": None, "password": None,
               "credential_provider": None, "health_check_interval": 0, "retry": Retry(NoBackoff(), 0)}
    pool = redis.ConnectionPool(connection_class=client.connection_pool.connection_class, **options)
    try:
        redis.Redis(connection_pool=pool).ping()
    except redis.AuthenticationError:
        return True
    finally:
        pool.disconnect()
    return False


def main(path, seconds):
    store = load(path).store
    for role, url in (("state", store.state_url), ("params", store.params_url)):
        client = connect(url, store, role)
        wait(client, role, seconds)
        if not refuses_strangers(client):
            sys.exit(f"the {role} Redis at {url} answers without a password")
        kept = bool(client.info("persistence")["aof_enabled"])
        if role == "state" and not kept:
            sys.exit(f"the state Redis at {url} has no append-only file: a restart would lose the run")
        print(f"{role}: answers to its password, append-only file {'on' if kept else 'off'}")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
