"""The console's files over HTTP: paths, caching, and the content security policy."""

import gzip
import http.client
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import redis

from five.services.controller.console.static_files import PAGES, ConsoleSite
from tests.services.live_controller import LiveController, live

SOURCE = Path(__file__).parents[4] / "console"
SCRIPT = b"console.log('five');\n" * 100


@pytest.fixture
def built(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text('<!doctype html><script type="module" src="/assets/index-abc.js"></script>')
    (tmp_path / "build.json").write_text('{"build": "0123456789ab"}')
    (tmp_path / "assets/index-abc.js").write_bytes(SCRIPT)
    return tmp_path


@pytest.fixture
def rest(redis_client: redis.Redis, redis_url: str, built: Path) -> Iterator[LiveController]:
    with live(redis_url, site=ConsoleSite(built)) as found:
        yield found


def directives(answer: httpx.Response) -> dict[str, list[str]]:
    return {words[0]: words[1:] for words in map(str.split, answer.headers["content-security-policy"].split(";"))}


def test_page_is_public_and_holds_no_run_data(rest: LiveController) -> None:
    for path in ("/", *(f"/{page}" for page in PAGES), *(f"/{page}/12/events" for page in PAGES)):
        answer = rest.ask("GET", path, "")
        assert answer.status_code == 200 and answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "trial" not in answer.text and "/assets/index-abc.js" in answer.text
    assert rest.ask("GET", "/v1/status", "").status_code == 401


def test_csp_forbids_inline_scripts_and_other_origins(rest: LiveController) -> None:
    for path in ("/", "/assets/index-abc.js", "/build.json"):
        answer = rest.ask("GET", path, "")
        found = directives(answer)
        assert found["default-src"] == ["'none'"] and found["frame-ancestors"] == ["'none'"]
        assert found["base-uri"] == ["'none'"] and found["form-action"] == ["'none'"]
        own = {"'self'", "'none'", "data:", "blob:"}
        assert all(set(sources) <= own for sources in found.values())
        assert found["script-src"] == found["style-src"] == found["connect-src"] == ["'self'"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


def test_hashed_files_are_cached_and_the_page_revalidated(rest: LiveController) -> None:
    asset, page = rest.ask("GET", "/assets/index-abc.js", ""), rest.ask("GET", "/", "")
    assert asset.content == SCRIPT and "immutable" in asset.headers["cache-control"]
    assert page.headers["cache-control"] == "no-cache"
    again = rest.ask("GET", "/", "", headers={"If-None-Match": page.headers["etag"]})
    assert again.status_code == 304 and not again.content
    assert again.headers["content-security-policy"] == page.headers["content-security-policy"]


def test_text_is_compressed_if_accepted(rest: LiveController) -> None:
    with httpx.stream("GET", rest.url + "/assets/index-abc.js", headers={"Accept-Encoding": "gzip"}) as answer:
        packed = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == "gzip" and len(packed) < len(SCRIPT) / 10
    assert gzip.decompress(packed) == SCRIPT
    plain = rest.ask("GET", "/assets/index-abc.js", "", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers and plain.content == SCRIPT


@pytest.mark.parametrize("path", ["/assets/../build.json", "/assets/%2e%2e/%2e%2e/pages.py", "/pages.py", "/assets/",
                                  "/assets/index-abd.js", "//etc/passwd"])
def test_unbuilt_files_are_not_found(rest: LiveController, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", rest.port)  # it sends the path as it is
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.status == 404 and answer.headers["content-type"] == "application/problem+json"
    connection.close()


def test_addresses_of_the_api_keep_their_own_answers(rest: LiveController) -> None:
    assert rest.ask("GET", "/v1/pause").status_code == 405
    assert rest.ask("POST", "/").status_code == 405
    assert rest.ask("GET", "/v1/nothing").status_code == 404


def test_a_tree_without_built_pages_says_how_to_build_them(redis_client: redis.Redis, redis_url: str, tmp_path: Path
                                                          ) -> None:
    with live(redis_url, site=ConsoleSite(tmp_path / "none")) as rest:
        answer = rest.ask("GET", "/", "")
        assert answer.status_code == 503 and "make console" in answer.text
        assert directives(answer)["default-src"] == ["'none'"]
        assert rest.ask("GET", "/healthz", "").status_code == 200


def test_the_controller_knows_every_page_of_the_source() -> None:
    paths = re.findall(r'path: "(/[^"]*)"', (SOURCE / "src/pages/index.ts").read_text())
    assert "/" in paths
    assert {path.strip("/").split("/")[0] for path in paths} - {""} == set(PAGES)


def test_the_source_loads_nothing_from_elsewhere() -> None:
    for path in (SOURCE / "index.html", *(SOURCE / "src").rglob("*.[ct]s*")):
        found = re.findall(r"""(?:src|href|import|from|url)\s*[=(]?\s*["'](?:https?:)?//[^"']*""", path.read_text())
        assert found == [], path
