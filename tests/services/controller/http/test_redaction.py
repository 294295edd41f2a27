"""No response shows a credential that somebody wrote into a URL of the configuration."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import redis
from pydantic import BaseModel, ValidationError

from five.run.config import RunConfig
from five.run.load import explain, load
from five.services.controller.run.setup import config_document, set_up_run
from rapid.store.state import Status
from tests.services.live_controller import OPERATOR, RUN, TLS, VIEWER, LiveController, bearer, live

MARKER = "mark3r"
URLS = [f"{scheme}://{rest}" for scheme in ("redis", "s3", "https", "file") for rest in (
    f"user:{MARKER}@host:1/p", f"host:1/p?password={MARKER}", f"user:a@b/{MARKER}@host:1")] + [f"{MARKER}@host:1"]


def texts(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[str, bool]]:
    """Yield the path of each key whose value is a text or a list of texts, and whether it is a list."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from texts(kind, (*path, name))
        elif "str" in str(kind):
            yield ".".join((*path, name)), str(kind).startswith("list")


def merged(tree: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Return a copy of a tree with the value at a dotted key."""
    first, _, rest = key.partition(".")
    return {**tree, first: merged(tree.get(first, {}), rest, value) if rest else value}


def marked(tree: dict[str, Any]) -> tuple[RunConfig, set[str]]:
    """Return a configuration with a credential in every key that accepts one, and these keys."""
    found = RunConfig.model_validate(tree)
    keys = set()
    # Names of heroes and fields are checked when the run is created.
    for key, is_list in [text for text in texts(RunConfig) if not text[0].startswith("game.")]:
        for url in URLS:
            try:
                changed = merged(tree, key, [url] if is_list else url)
                found = RunConfig.model_validate(changed)
            except ValidationError as error:
                assert MARKER not in explain(error, "run.yaml"), "an error must not repeat it either"
                continue
            tree = changed
            keys.add(key)
            break
    return found, keys


@pytest.fixture(scope="module")
def config() -> RunConfig:
    found, keys = marked(load("laptop-1v1", [f"name={RUN}"]).model_dump(mode="json", by_alias=True))
    assert {"store.state_url", "store.params_url", "blobs.url"} <= keys
    assert MARKER in found.model_dump_json()
    return found


@pytest.mark.parametrize("url", [URLS[0], URLS[1], URLS[2]])
@pytest.mark.parametrize("key", ["store.state_url", "blobs.url", "services.controller.tokens_file"])
def test_stored_configuration_has_no_credentials(key: str, url: str) -> None:
    document = json.dumps(config_document(load("laptop-1v1", [f"{key}={json.dumps(url)}"])))
    assert MARKER not in document and "***" in document


def answers(rest: LiveController, token: str) -> Iterator[tuple[str, str]]:
    """Yield the path and text of each GET, and the beginning of each stream."""
    paths = [path for path, methods in rest.ask("GET", "/openapi.json").json()["paths"].items() if "get" in methods]
    for path in [*(p for p in paths if "{" not in p and p != "/v1/stream"), "/v1/session", "/v1/console/timeline"]:
        yield path, rest.ask("GET", path, token).text
    for path in ("/v1/stream", "/v1/console/stream"):
        with httpx.stream("GET", rest.url + path, headers={**bearer(token), "Last-Event-ID": "0-0~0-0"}, timeout=20,
                          verify=TLS) as answer:
            text = ""
            for piece in answer.iter_text():
                text += piece
                if "config.set" in text and "event: status" in text:
                    break
            yield path, text


@pytest.mark.parametrize("token", [VIEWER, OPERATOR])
def test_no_response_shows_credentials_of_the_configuration(redis_client: redis.Redis, redis_url: str,
                                                            config: RunConfig, token: str) -> None:
    with live(redis_url, create=False) as rest:
        set_up_run(rest.state, config, "test")
        rest.state.transition(Status.RUNNING, "test")
        # An earlier release may have stored all of it.
        rest.state.set_config(config.model_dump(mode="json", by_alias=True), "test")
        seen = dict(answers(rest, token))
        assert len(seen) >= 20 and "***" in seen["/v1/config"] and "***" in seen["/v1/events"]
        assert [path for path, text in seen.items() if MARKER in text] == []


def test_errors_show_no_credentials(redis_client: redis.Redis, redis_url: str) -> None:
    class Away:
        def live(self) -> None:
            raise redis.ConnectionError(f"no route to redis://user:{MARKER}@host:6379/0")

    with live(redis_url, leases=Away()) as rest:
        answer = rest.ask("GET", "/v1/services")
        assert answer.status_code == 503 and MARKER not in answer.text and "redis://***@host" in answer.text
