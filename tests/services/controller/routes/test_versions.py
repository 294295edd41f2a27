"""Pages of versions over gaps in their numbers, and a version's metadata."""

from typing import Any

import numpy as np
import pytest

from five.services.controller.http.dependencies import Context
from five.services.controller.routes import versions
from tests.services.controller.routes.conftest import Api
from tests.services.live_controller import problem


def publish(context: Context, *numbers: int) -> None:
    for number in numbers:
        context.store.publish(number, {"w": np.full(3, number, np.float32)}, {"reward_std": float(number)})


def read(api: Api, **query: Any) -> list[int]:
    answer = api.ask("GET", "/v1/versions", params=query)
    assert answer.status_code == 200, answer.text
    return [item["version"] for item in answer.json()["items"]]


def test_pages_begin_next_to_the_cursor(api: Api) -> None:
    publish(api.context, *range(8))
    assert read(api) == [7, 6, 5, 4, 3, 2, 1, 0]
    assert read(api, limit=3) == [7, 6, 5] and read(api, limit=3, before=5) == [4, 3, 2]
    assert read(api, before=0) == [] and read(api, before=1) == [0] and read(api, before=99, limit=1) == [7]
    assert read(api, after=-1, limit=3) == [0, 1, 2] and read(api, after=2, limit=2) == [3, 4]
    assert read(api, after=6) == [7] and read(api, after=7) == [] and read(api, after=99) == []


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "PAGE", 1)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6])
def test_a_page_is_full_across_gaps(api: Api, limit: int) -> None:
    numbers = [0, 1, 5, 6, 7, 20]
    publish(api.context, *numbers)
    assert read(api, limit=limit) == numbers[::-1][:limit]
    assert read(api, after=-1, limit=limit) == numbers[:limit]


@pytest.mark.parametrize(("gap", "found"), [(15, False), (16, True)])
def test_a_page_searches_a_limited_gap(api: Api, monkeypatch: pytest.MonkeyPatch, gap: int, found: bool) -> None:
    """Pages search from version 9 to 25 and back."""
    monkeypatch.setattr(versions, "MAX_GAP", gap)
    publish(api.context, 9, 25)
    assert read(api, after=9, limit=1) == ([25] if found else [])
    assert read(api, before=25, limit=1) == ([9] if found else [])


def test_each_gap_of_a_page_may_have_the_limit(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Archived versions of a long run are far apart, and all of them are listed."""
    monkeypatch.setattr(versions, "MAX_GAP", 10)
    publish(api.context, *range(0, 50, 10))
    assert read(api, limit=5) == [40, 30, 20, 10, 0] and read(api, limit=5, after=-1) == [0, 10, 20, 30, 40]


def test_version_has_its_metadata_until_it_is_removed(api: Api) -> None:
    publish(api.context, 3)
    found = api.ask("GET", "/v1/versions/3").json()
    assert (found["version"], found["bytes"], found["blob"]) == (3, 12, None)
    assert found["meta"]["reward_std"] == 3.0 and found["digest"] and found["created_at"] > 1e9
    missing = api.ask("GET", "/v1/versions/2")
    assert missing.status_code == 404 and "version 2" in missing.json()["detail"]


def test_metadata_in_an_unavailable_blob_store_can_be_retried(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(api.context, 3)

    def fail(version: int) -> None:
        raise OSError("no route to the bucket")

    monkeypatch.setattr(api.context.store, "fetch_meta", fail)
    refused = api.ask("GET", "/v1/versions/3")
    assert "no route to the bucket" in problem(refused, 503, "unavailable")["detail"] and refused.headers["Retry-After"]
