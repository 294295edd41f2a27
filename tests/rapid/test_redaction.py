"""Users, passwords and queries of URLs do not leave the process, by whatever way a text does."""

import io
import json
import logging
import time

import pytest

from rapid.config import TelemetryConfig
from rapid.redaction import redact, redact_tree, redact_url
from rapid.startup import exit_with_error
from rapid.telemetry.logs import configure_logs

MARKER = "s3cr3t"


def test_urls_in_text_are_redacted() -> None:
    assert redact("PUT https://a.blob.core.windows.net/c/k?sv=1&sig=abc%2F no") == (
        "PUT https://a.blob.core.windows.net/c/k?*** no")
    assert redact("s3://me:secret@bucket/x and http://h/p?q) end") == "s3://***@bucket/x and http://h/p?***) end"
    assert redact("/a/folder?with=marks") == "/a/folder?with=marks"
    assert redact("ada@example.org at http://h:80/p, twice") == "ada@example.org at http://h:80/p, twice"


def test_each_url_of_one_word_is_redacted() -> None:
    assert redact("[a](http://u:p@h/x?k=1)(http://h/y?k=2)://z?3") == "[a](http://***@h/x?***)(http://h/y?***)://z?***"
    assert redact("://@") == "://***@" and redact("://?") == "://?***" and redact("http://a)b") == "http://a)b"


@pytest.mark.parametrize("part", ["://", "://@", "://?", "://?)", "a://b"])
def test_redaction_takes_linear_time(part: str) -> None:
    """Responses repeat the path of a request, of which a client without a token may send 16 KB."""
    began = time.process_time()
    redact(part * 30_000)
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize("password", ["s3cr3t", "a@s3cr3t", "a/s3cr3t", "a?s3cr3t", "a:s3cr3t", "s3cr3t?x@y"])
def test_password_with_special_characters_is_redacted(password: str) -> None:
    for url in (f"redis://user:{password}@host:6379/0", f"redis://host:6379/0?password={MARKER}",
                f"unix://u:{password}@/tmp/redis.sock?db=1&password={MARKER}"):
        for text in (redact(f"cannot reach {url}: refused"), redact(json.dumps({"url": url})), redact_url(url)):
            assert MARKER not in text and "***" in text


def test_url_with_spaces_and_quotes_is_redacted() -> None:
    assert redact_url('redis://u:a "b" c@host/0') == "redis://***@host/0"
    assert redact_url("/a/folder@x?y") == "/a/folder@x?y"


def test_every_text_of_a_tree_is_redacted() -> None:
    tree = {"a": [f"redis://:{MARKER}@h", {"b": f"see http://h/?k={MARKER} now"}], "n": 1, "none": None, "on": True}
    assert redact_tree(tree) == {"a": ["redis://***@h", {"b": "see http://h/?*** now"}], "n": 1, "none": None,
                                 "on": True}


@pytest.mark.parametrize("log_json", [False, True])
def test_logs_are_redacted(log_json: bool) -> None:
    root = logging.getLogger()
    handlers, level, stream = root.handlers[:], root.level, io.StringIO()
    try:
        configure_logs(TelemetryConfig(log_json=log_json), stream=stream)
        try:
            raise OSError(f"no answer of redis://u:{MARKER}@h")
        except OSError:
            logging.getLogger("x").exception("cannot read s3://me:%s@bucket", MARKER,
                                             extra={"url": f"http://h/?k={MARKER}"})
    finally:
        root.handlers[:], root.level = handlers, level
    assert MARKER not in stream.getvalue() and stream.getvalue().count("***") >= 3


def test_error_at_the_start_is_redacted(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        exit_with_error("controller", ValueError(f"redis://u:{MARKER}@h is not a Redis URL"))
    assert capsys.readouterr().err == "controller: redis://***@h is not a Redis URL\n"
