"""Files of a blob store in a bucket: Amazon S3 and compatible servers, Google Cloud Storage, Azure Blob Storage.

Options and credentials come from the environment or from the identity of the machine or pod, never from the URL.
"""

import itertools
import os
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from rapid.blob_files import BLOCK_BYTES, Buffer
from rapid.redaction import redact, redact_url

SCHEMES = ("s3", "gs", "az")
# Variables that obstore reads.
_ENDPOINTS = {"s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"), "gs": ("GOOGLE_BASE_URL",),
              "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")}
_SIGNED = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION")
_PART_BYTES = 16 << 20  # S3 allows 10,000 parts, which are 160 GB
_WRITERS = 4  # parts of one file that are sent at the same time
_READERS = 8  # ranges of one file that are read at the same time
_REQUEST_SECONDS = 120.0  # a part or a range must arrive within it
_RETRY_SECONDS = 60.0
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "bucket does not exist")
_FIELD = re.compile(r"^\s*(?:source|error|message): ", re.MULTILINE)  # of a Rust error in its debug format
# Parts that differ each time: a waiting service logs a reason again when its text changes.
_VARYING = re.compile(r" in [\d.]+[nµm]?s(, after \d+ retries, max_retries: \d+, retry_timeout: [\d.]+[nµm]?s)?|"
                      r"<(RequestId|HostId)>[^<]*</\2>|RequestId:\S+ Time:[^\s<]+")
_PUNCTUATION = re.compile(r'[(){}\[\],"\s]+')


class ObjectStoreError(OSError):
    """An object store does not respond, or refuses a request."""


class BucketFiles:
    """Files below ``url``, such as s3://bucket/prefix. Implements `BlobFiles`.

    Requests that fail with 429, 5xx or a lost connection are repeated for a minute. Raises ValueError for an invalid
    URL, and missing or unusable options.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError("only SCHEME://BUCKET/PREFIX is allowed; credentials and options go into the environment")
        if not parts.netloc:
            raise ValueError("the bucket is missing; expected SCHEME://BUCKET/PREFIX")
        try:
            import obstore
            from obstore import exceptions, store
        except ImportError:
            raise ValueError("obstore is not installed: in the checkout run make setup or pip install -e "
                             "'.[platform]'") from None
        self.url = url
        self._obstore: Any = obstore
        self._failures: tuple[type[Exception], ...] = (exceptions.BaseError, OSError)
        self._exists: tuple[type[Exception], ...] = (exceptions.AlreadyExistsError, exceptions.PreconditionError)
        options: Any = {"timeout": timedelta(seconds=_REQUEST_SECONDS)}
        if _is_plain_http(parts.scheme):
            options["allow_http"] = True
        retries: Any = {
            "max_retries": 12, "retry_timeout": timedelta(seconds=_RETRY_SECONDS),
            "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=10), "base": 2}}
        try:
            self._store: Any = store.from_url(url, client_options=options, retry_config=retries)
        except (exceptions.BaseError, ValueError, OSError) as error:
            raise ValueError(_reason(error)) from None

    @contextmanager
    def _reporting(self, action: str, key: str) -> Iterator[None]:
        """Raise FileNotFoundError for a missing file and ObjectStoreError for every other failure."""
        try:
            yield
        except self._failures as error:
            if isinstance(error, FileNotFoundError) and not any(word in str(error) for word in _NO_BUCKET):
                raise FileNotFoundError(f"{self.url} has no {key}") from None
            raise ObjectStoreError(f"{self.url}: cannot {action} {key}: {_reason(error)}") from None

    def write(self, key: str, pieces: Iterable[Buffer]) -> None:
        """Implement BlobFiles. An upload in parts becomes visible when it is complete."""
        blocks, begin = _blocks(pieces), bytearray()
        while len(begin) <= _PART_BYTES and (block := next(blocks, None)) is not None:
            begin += block
        with self._reporting("write", key):
            if len(begin) <= _PART_BYTES:
                self._obstore.put(self._store, key, bytes(begin), use_multipart=False)
            else:
                self._obstore.put(self._store, key, itertools.chain([begin], blocks), chunk_size=_PART_BYTES,
                                  max_concurrency=_WRITERS)

    def create(self, key: str, data: bytes) -> bool:
        """Implement BlobFiles, by a conditional request."""
        with self._reporting("create", key):
            try:
                self._obstore.put(self._store, key, data, mode="create")
            except self._exists:
                return False
        return True

    def size(self, key: str) -> int | None:
        """Implement BlobFiles."""
        try:
            with self._reporting("read", key):
                return int(self._obstore.head(self._store, key)["size"])
        except FileNotFoundError:
            return None

    def read(self, key: str, most: int | None = None) -> bytes:
        """Implement BlobFiles."""
        with self._reporting("read", key):
            if most is None:
                return bytes(self._obstore.get(self._store, key).bytes())
            return bytes(self._obstore.get_range(self._store, key, start=0, end=most)) if most else b""

    def read_into(self, key: str, target: memoryview) -> Iterator[memoryview]:
        """Implement BlobFiles, by several ranges at a time."""
        def read(start: int) -> memoryview:
            end = min(start + BLOCK_BYTES, len(target))
            with self._reporting("read", key):
                block = memoryview(self._obstore.get_range(self._store, key, start=start, end=end))
            target[start:start + len(block)] = block
            return target[start:start + len(block)]

        with ThreadPoolExecutor(_READERS, "blob-reader") as readers:
            yield from readers.map(read, range(0, len(target), BLOCK_BYTES))

    def names(self, prefix: str) -> list[str]:
        """Implement BlobFiles."""
        with self._reporting("list", prefix):
            return [str(row["path"]) for page in self._obstore.list(self._store, prefix, chunk_size=1000)
                    for row in page]

    def remove(self, key: str) -> None:
        """Implement BlobFiles."""
        try:
            with self._reporting("remove", key):
                self._obstore.delete(self._store, key)
        except FileNotFoundError:
            pass

    def remove_folder(self, prefix: str) -> None:
        """Do nothing: a bucket has no folders."""

    def remove_partial(self, prefix: str, seconds: float) -> int:
        """Do nothing: incomplete uploads are invisible, and a rule of the bucket removes them."""
        return 0


def _blocks(pieces: Iterable[Buffer]) -> Iterator[memoryview]:
    """Yield the contents in blocks of bounded size."""
    for piece in pieces:
        view = memoryview(piece).cast("B")
        for start in range(0, len(view), BLOCK_BYTES):
            yield view[start:start + BLOCK_BYTES]


def _is_plain_http(scheme: str) -> bool:
    """Return whether a variable gives the server's address with http://.

    Raises ValueError for values with which obstore later panics, which no `except Exception` catches, or signs requests
    that every server refuses.
    """
    for name in _SIGNED if scheme == "s3" else ():
        value = os.environ.get(name, "")
        if value != value.strip():
            raise ValueError(f"{name} begins or ends with white space, such as the end of a line: remove it")
    endpoints = {name: os.environ[name] for name in _ENDPOINTS[scheme] if name in os.environ}
    for name, value in endpoints.items():
        if value != value.strip() or not value.startswith(("http://", "https://")):
            raise ValueError(f"{name} {redact_url(value)!r}: expected http://HOST:PORT or https://HOST:PORT; unset it "
                             "for the cloud's own server")
    return any(value.startswith("http://") for value in endpoints.values())


def _reason(error: Exception) -> str:
    """Return the first paragraph of an error, redacted and without durations and request ids, and the cause of a failed
    connection.

    The paragraphs after it are for debugging. Only they tell a refused connection, an unknown host and an untrusted
    certificate apart.
    """
    summary, _, details = str(error).partition("\n\n")
    words = summary.split()
    if "HttpError {" in details:
        words += ["-", *_PUNCTUATION.sub(" ", _FIELD.split(details)[-1]).split()]
    return redact(_VARYING.sub("", " ".join(words)))
