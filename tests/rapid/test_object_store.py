"""Blobs in a bucket of a real S3 server, used by several processes."""

import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from rapid.blobs import BlobMissing, BlobStore, Ref
from rapid.object_store import BucketFiles, ObjectStoreError
from rapid.store.errors import is_away
from tests.rapid.s3_server import KEY, SECRET, S3Server

LIBS = Path(__file__).parents[2] / "libs"
PUT = """
import sys
from rapid.blobs import BlobStore
contents = bytes(range(256)) * 160_000  # 41 MB: three parts
print(BlobStore(sys.argv[1]).put([contents[:1000], contents[1000:]], "r/checkpoints/1").digest)
"""
CREATE = """
import sys
from rapid.blobs import BlobStore
blobs = BlobStore(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
print(sum(blobs.create_owner(f"run-{i}", sys.argv[2].encode()) for i in range(20)))
"""
UPLOAD = """
import sys, time
from rapid.blobs import BlobStore
def pieces():
    for i in range(6):
        yield bytes(8 << 20)
    print("sent", flush=True)
    time.sleep(60)
blobs = BlobStore(sys.argv[1])
blobs._files.write("objects/aa/" + "a" * 64, pieces())
"""


def start(program: str, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True, env={**os.environ, "PYTHONPATH": str(LIBS)})


def test_missing_package_is_refused_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ValueError, match=r"in the checkout run make setup or pip install -e '\.\[platform\]'$"):
        BucketFiles("s3://bucket/runs")


@pytest.mark.parametrize(("url", "variable", "value"), [
    ("s3://bucket/runs", "AWS_ACCESS_KEY_ID", "a-key-of-a-file\n"), ("s3://bucket/runs", "AWS_ENDPOINT_URL", ""),
    ("s3://bucket/runs", "AWS_ENDPOINT_URL", "127.0.0.1:9000"),
    ("s3://bucket/runs", "AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9000\n"), ("gs://bucket/runs", "GOOGLE_BASE_URL", ""),
    ("az://container/runs", "AZURE_STORAGE_ENDPOINT", "127.0.0.1:10000")])
def test_unusable_variable_is_refused(monkeypatch: pytest.MonkeyPatch, url: str, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ValueError, match=f"^blobs.url {url}: {variable} ") as caught:
        BlobStore(url)
    assert "a-key-of-a-file" not in str(caught.value)


def test_contents_of_one_process_are_read_by_another(bucket: str) -> None:
    blobs = BlobStore(bucket)
    assert blobs.refs("r/checkpoints") == []  # nothing may remember this list
    out, _ = start(PUT, bucket).communicate(timeout=60)
    assert blobs.refs("r/checkpoints") == ["r/checkpoints/1"]
    ref = blobs.ref("r/checkpoints/1")
    assert ref == Ref(out.strip(), 256 * 160_000)
    array = blobs.get_array(ref)
    assert (array.reshape(-1, 256) == np.arange(256, dtype=np.uint8)).all()
    assert blobs.get_prefix(ref, 3) == b"\0\1\2"


def test_only_one_process_creates_a_file(bucket: str) -> None:
    processes = [start(CREATE, bucket, str(i)) for i in range(2)]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    results = []
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        results.append(int(process.communicate(timeout=60)[0]))
    assert sum(results) == 20
    found = [BlobStore(bucket).owner(f"run-{i}") for i in range(20)]
    assert [found.count(b"0"), found.count(b"1")] == results


def test_failed_upload_leaves_nothing(bucket: str) -> None:
    blobs = BlobStore(bucket)
    blobs.put(b"old", "name")

    class Breaking:
        passes = 0

        def __iter__(self) -> Iterator[bytes]:
            self.passes += 1
            yield bytes(40 << 20)
            if self.passes == 2:
                raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        blobs.put(Breaking(), "name")  # type: ignore[arg-type]
    assert blobs.get("name") == b"old"
    assert BucketFiles(bucket).names("objects") == [f"objects/{d[:2]}/{d}" for d in [blobs.ref("name").digest]]


def test_killed_upload_leaves_nothing(bucket: str, s3_server: S3Server) -> None:
    s3_server.requests()
    process = start(UPLOAD, bucket)
    assert process.stdout is not None and process.stdout.readline() == "sent\n"
    sent: list[str] = []
    end = time.monotonic() + 20
    while sum(request.startswith("PUT") for request in sent) < 2 and time.monotonic() < end:
        sent += s3_server.requests()
        time.sleep(0.05)
    assert sum(request.startswith("PUT") for request in sent) >= 2, sent
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert BucketFiles(bucket).names("objects") == []


@pytest.mark.parametrize("status", [500, 503, 429])
def test_transient_failures_are_retried(bucket: str, s3_server: S3Server, status: int) -> None:
    blobs = BlobStore(bucket)
    s3_server.fail(status, status)
    ref = blobs.put(b"hello", "name")
    s3_server.fail(status, status)
    assert blobs.get("name") == b"hello"
    s3_server.fail(status)
    assert blobs.refs() == ["name"]
    s3_server.fail(status)
    assert blobs.create_owner("run", b"me") and not blobs.create_owner("run", b"you")
    s3_server.fail(status)
    blobs.remove_ref("name")
    assert s3_server.failures_left() == 0
    with pytest.raises(BlobMissing):
        blobs.get(ref)


def test_missing_bucket_is_not_an_empty_store(bucket: str) -> None:
    blobs = BlobStore(bucket.replace("bucket-", "another-"))
    for use in (blobs.refs, lambda: blobs.put(b"x", "name"), lambda: blobs.owner("run"), lambda: blobs.ref("name")):
        with pytest.raises(ObjectStoreError, match="another-") as caught:
            use()
        assert is_away(caught.value)


def test_refusal_is_one_line_without_credentials(bucket: str, s3_server: S3Server) -> None:
    blobs = BlobStore(bucket)
    s3_server.fail(403)
    with pytest.raises(ObjectStoreError, match=re.escape(bucket)) as caught:
        blobs.put(b"x", "name")
    text = str(caught.value)
    assert "\n" not in text and KEY not in text and SECRET not in text and is_away(caught.value)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_same_refusal_has_the_same_text(bucket: str, s3_server: S3Server) -> None:
    texts = set()
    for _ in range(2):
        s3_server.fail(403)
        with pytest.raises(ObjectStoreError) as caught:
            BlobStore(bucket).refs()
        texts.add(str(caught.value))
    assert len(texts) == 1


def test_unreachable_server_is_an_error(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rapid.object_store._RETRY_SECONDS", 0.5)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    began = time.monotonic()
    with pytest.raises(ObjectStoreError, match="cannot list .* - Connection refused$"):
        BlobStore(bucket).refs()
    assert time.monotonic() - began < 20


def test_untrusted_certificate_is_reported(bucket: str, certificates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rapid.object_store._RETRY_SECONDS", 0.5)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")

    def shake_hands(listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:  # the end of the test
                return
            with connection, suppress(OSError):
                context.wrap_socket(connection, server_side=True).close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=shake_hands, args=(listener,))
        thread.start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"https://127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(ObjectStoreError, match="InvalidCertificate UnknownIssuer"):
            BlobStore(bucket).refs()
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"])
def test_endpoint_of_plain_http_is_used(
        bucket: str, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", "of another store")
    monkeypatch.setenv("AWS_PAGER", "less ")  # of another program
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setenv(variable, s3_server.endpoint)
    assert BlobStore(bucket).refs() == []
