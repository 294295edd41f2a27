"""Built files of the console: media types, compression, tags, and the page's prefix."""

import gzip
import json
from pathlib import Path

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient

from five.services.controller.console.static_files import ConsoleSite, StaticFile, install

PAGE = (b'<!doctype html><meta name="path-prefix" content=""><link rel="icon" href="./icon.svg">'
        b'<link href="./assets/a.css"><script src="./assets/a.js"></script><a href="/docs">x</a>')


def request(**headers: str) -> Request:
    return Request({"type": "http", "headers": [(name.replace("_", "-").encode(), value.encode())
                                                for name, value in headers.items()]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "assets/fonts").mkdir(parents=True)
    for name, body in (("index.html", PAGE), ("build.json", b'{"build": 123}'), ("robots.txt", b"none"),
                       ("assets/a.js", b"a" * 1025), ("assets/fonts/a.woff2", b"f" * 2000)):
        (tmp_path / name).write_bytes(body)
    return tmp_path


@pytest.mark.parametrize(("name", "media_type", "is_text"), [
    ("a.js", "text/javascript; charset=utf-8", True), ("a.css", "text/css; charset=utf-8", True),
    ("index.html", "text/html; charset=utf-8", True), ("a.json", "application/json; charset=utf-8", True),
    ("icon.svg", "image/svg+xml; charset=utf-8", True), ("a.png", "image/png", False),
    ("a.unknown-kind", "application/octet-stream", False), ("LICENSE", "application/octet-stream", False)])
def test_file_has_its_media_type(name: str, media_type: str, is_text: bool) -> None:
    assert StaticFile.of(name, b"x").media_type == media_type
    assert (StaticFile.of(name, b"x" * 2000).gzipped is not None) is is_text, "other files are compressed already"


def test_long_text_alone_is_compressed() -> None:
    assert StaticFile.of("a.js", b"x" * 1024).gzipped is None
    gzipped = StaticFile.of("a.js", b"x" * 1025).gzipped
    assert gzipped is not None and gzip.decompress(gzipped) == b"x" * 1025


def test_tag_follows_the_contents() -> None:
    tags = {StaticFile.of(name, body).tag for name, body in (("a.js", b"1"), ("b.js", b"1"), ("a.js", b"2"))}
    assert len(tags) == 2 and all(len(tag) == 34 and tag[0] == tag[-1] == '"' for tag in tags)


def test_file_is_compressed_if_accepted(folder: Path) -> None:
    site = ConsoleSite(folder)
    packed = site.answer("assets/a.js", request(accept_encoding="br, gzip"))
    plain = site.answer("assets/a.js", request(accept_encoding="br"))
    assert (packed.status_code, plain.status_code) == (200, 200)
    assert gzip.decompress(bytes(packed.body)) == plain.body == b"a" * 1025
    assert packed.headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers
    assert packed.headers["content-type"] == plain.headers["content-type"] == "text/javascript; charset=utf-8"
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    font = site.answer("assets/fonts/a.woff2", request(accept_encoding="gzip"))
    assert font.body == b"f" * 2000 and "content-encoding" not in font.headers


@pytest.mark.parametrize(("name", "caching"), [
    ("assets/a.js", "public, max-age=31536000, immutable"), ("build.json", "no-cache"), ("index.html", "no-cache")])
def test_unchanged_file_is_not_sent_again(folder: Path, name: str, caching: str) -> None:
    site = ConsoleSite(folder)
    first = site.answer(name, request())
    again = site.answer(name, request(if_none_match=first.headers["etag"]))
    assert (again.status_code, again.body) == (304, b"") and again.headers["cache-control"] == caching
    assert first.headers["cache-control"] == caching and "content-security-policy" in first.headers
    assert site.answer(name, request(if_none_match='"other"')).status_code == 200


def test_page_names_its_files_below_the_prefix(folder: Path) -> None:
    body = bytes(ConsoleSite(folder, "/five").answer("index.html", request()).body)
    assert body == PAGE.replace(b'content=""', b'content="/five"').replace(b'="./', b'="/five/')
    assert bytes(ConsoleSite(folder).answer("index.html", request()).body) == PAGE.replace(b'="./', b'="/')
    assert ConsoleSite(folder).files["index.html"].tag != ConsoleSite(folder, "/five").files["index.html"].tag


def test_build_has_a_name(folder: Path, tmp_path: Path) -> None:
    assert ConsoleSite(folder).build == "123"
    (folder / "build.json").write_text(json.dumps({"build": "0123456789ab"}))
    assert ConsoleSite(folder).build == "0123456789ab"
    (folder / "build.json").unlink()
    assert ConsoleSite(folder).build == "" == ConsoleSite(tmp_path / "none").build


@pytest.mark.parametrize("prefix", ["", "/five"])
def test_missing_page_links_to_the_api(tmp_path: Path, prefix: str) -> None:
    answer = ConsoleSite(tmp_path / "none", prefix).answer("index.html", request())
    assert answer.status_code == 503 and answer.headers["cache-control"] == "no-cache"
    assert f'<a href="{prefix}/openapi.json">'.encode() in bytes(answer.body)
    assert "content-security-policy" in answer.headers


def test_every_built_file_has_a_route(folder: Path) -> None:
    app = FastAPI(openapi_url=None)
    install(app, ConsoleSite(folder))
    client = TestClient(app)
    for path, text in (("/build.json", '{"build": 123}'), ("/robots.txt", "none"), ("/assets/a.js", "a" * 1025),
                       ("/assets/fonts/a.woff2", "f" * 2000)):
        assert client.get(path).text == text
    for path in ("/", "/games", "/games/", "/games/played/12", "/docs", "/play/a/b/c"):
        assert client.get(path).content == PAGE.replace(b'="./', b'="/')
    for path in ("/index.html", "/assets", "/assets/b.js", "/nothing", "/gamesx"):
        assert client.get(path).status_code == 404
    assert client.post("/").status_code == client.post("/build.json").status_code == 405
