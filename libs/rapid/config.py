"""Configuration of the platform: connections, stores, telemetry and process settings of every service."""

import os
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from rapid.section import Section

MEBIBYTE = 1 << 20
REDIS_SCHEMES = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel")


class TlsConfig(Section):
    """Files of a TLS setup, PEM. A server needs certificate and key; a client needs the authority."""

    authority: str = Field("", description="Trusted certificates; empty: the machine's own.")
    certificate: str = Field("", description="This process's certificate chain.")
    key: str = Field("", description="Private key of the certificate.")
    server_name: str = Field("", description="Name expected in the server's certificate; empty: the one dialled.")
    require_client_certificate: bool = Field(False, description="Refuse clients without a trusted certificate.")

    @field_validator("authority", "certificate", "key")
    @classmethod
    def _expand_home(cls, path: str) -> str:
        """Replace ``~`` by the home folder, because neither ssl nor gRPC does."""
        return os.path.expanduser(path)

    @model_validator(mode="after")
    def _pairs(self) -> "TlsConfig":
        if bool(self.certificate) != bool(self.key):
            raise ValueError("certificate and key must be given together")
        if self.require_client_certificate and not self.authority:
            raise ValueError("require_client_certificate needs authority, which verifies the clients")
        return self


class RpcConfig(Section):
    """gRPC connections between the services."""

    max_message_mebibytes: int = Field(64, ge=1, le=1024, description="Largest message that is sent or accepted. "
                                       "Servers of small requests accept less: dota_env, evaluator, opponents, play.")
    deadline_seconds: float = Field(20.0, gt=0, description="Deadline of a call, or of one request on a stream.")
    retries: int = Field(4, ge=0, le=20, description="Retries of a call that found no server.")
    backoff_seconds: float = Field(0.1, gt=0, description="Pause before the first retry or reconnection.")
    max_backoff_seconds: float = Field(5.0, gt=0, description="Longest pause between retries; pauses double.")
    reconnect_seconds: float = Field(120.0, gt=0, description="Time after which a stream's client without a "
                                     "server gives up.")
    stream_max_seconds: float = Field(600.0, ge=0, description="Approximate age at which a rollout's stream to "
                                      "inference resolves its servers again, and moves if it belongs to another one; "
                                      "0: never.")
    keepalive_seconds: float = Field(20.0, ge=5, description="Ping interval of idle and busy connections.")
    keepalive_timeout_seconds: float = Field(10.0, gt=0, description="Time without a response to a ping after "
                                             "which the connection is closed.")
    listen_host: str = Field("127.0.0.1", min_length=1, description="Address that servers listen on; :: is every "
                             "address, IPv4 and IPv6, as in a container.")
    max_concurrent_calls: int = Field(4096, ge=1, description="Concurrent calls and streams of a server; more are "
                                      "refused with RESOURCE_EXHAUSTED.")
    read_ahead_mebibytes: float = Field(32.0, gt=0, description="Unanswered requests that a stream's server buffers; "
                                        "beyond it flow control blocks the client.")
    caller_secret_file: str = Field("", description="File with the secret of this process, of which the tokens of its "
                                    "calls are made; read again when it changes. Empty: environment variable "
                                    "FIVE_CALLER_SECRET_FILE.")
    callers_file: str = Field("", description="JSON file with the callers of each kind of server and the hashes of "
                              "their tokens, read again when it changes. Empty: environment variable "
                              "FIVE_CALLERS_FILE.")
    require_token: bool = Field(True, description="Whether servers need the file of callers to start, and refuse calls "
                                "that it does not allow.")
    tls: TlsConfig | None = Field(None, description="TLS of the connections; none: plain text.")

    @property
    def read_ahead_bytes(self) -> int:
        """Bound on unprocessed request bytes of a stream."""
        return int(self.read_ahead_mebibytes * MEBIBYTE)

    @property
    def max_message_bytes(self) -> int:
        """Limit that channels, servers and errors use."""
        return self.max_message_mebibytes * MEBIBYTE


class StoreConfig(Section):
    """Redis servers of a run's state and parameters."""

    state_url: str = Field("", description="Redis of the run's state, append-only file on; empty: embedded. Its "
                           "password comes from the variable FIVE_STATE_PASSWORD or the file of "
                           "FIVE_STATE_PASSWORD_FILE.")
    params_url: str = Field("", description="Redis of the newest parameters, no persistence; empty: embedded. Its "
                            "password comes from the variable FIVE_PARAMS_PASSWORD or the file of "
                            "FIVE_PARAMS_PASSWORD_FILE.")
    tls_authority: str = Field("", description="File with the certificates that rediss:// URLs are checked against; "
                               "empty: the machine's own.")
    timeout_seconds: float = Field(10.0, gt=0, description="Timeout of one exchange with Redis. All its "
                                   "retries together take at most twice as long.")
    reconnect_seconds: float = Field(60.0, ge=0, description="Time for which a starting service, a publish or a "
                                     "fetch waits for an unreachable Redis.")
    chunk_mebibytes: float = Field(2.0, gt=0, le=64, description="Size of a version's chunks; 1 to 4 is best.")
    keep_versions: int = Field(4, ge=1, description="Versions in Redis, in addition to the blob store's.")
    grace_seconds: float = Field(60.0, ge=0, description="Time for which a removed version stays for its readers.")
    upload_seconds: float = Field(600.0, gt=0, description="Expiry of the chunks of an unfinished publish.")
    archive_every: int = Field(1, ge=0, description="Multiples of this version number stay in the blob "
                               "store, up to max_archived of them; other versions stay while among the newest "
                               "keep_archived. 0: no archive.")
    keep_archived: int = Field(20, ge=1, description="Newest versions that always stay in the blob store.")
    max_archived: int = Field(10_000, ge=0, description="Most multiples of archive_every in the blob store, apart from "
                              "pinned versions and the newest 100. The newer half stays; of the older ones every "
                              "second is removed whenever they exceed the other half. 0: no limit.")
    series_records: int = Field(100_000, ge=1000, le=200_000, description="Newest records that the state Redis keeps "
                                "of each series (versions, games, ratings), at 3.2 kB a version and 0.9 a game.")
    node_folder: str = Field("", description="Folder in memory that the processes of one node share: one of them "
                             "reads a version from Redis, the others read its file. Empty: each reads from Redis.")
    publish_dtype: Literal["float32", "bfloat16"] = Field("float32", description="Dtype of published matrices; "
                                                          "vectors stay float32.")

    @field_validator("state_url", "params_url")
    @classmethod
    def _names_a_redis(cls, url: str) -> str:
        """Refuse what no client can connect to. Errors do not repeat the URL, which may contain a password."""
        scheme, separator, _ = url.partition("://")
        if url and not (separator and scheme in REDIS_SCHEMES):
            raise ValueError(f"expected a URL that begins with {', '.join(f'{name}://' for name in REDIS_SCHEMES)}")
        if scheme in ("redis", "rediss"):
            try:
                urlsplit(url).port  # noqa: B018 - raises ValueError
            except ValueError:
                raise ValueError(f"no port up to 65535: expected {scheme}://HOST:PORT/DATABASE, with any special "
                                 "character of a password as %XX") from None
        return url

    @property
    def chunk_bytes(self) -> int:
        """Chunk size in bytes, a multiple of 64."""
        return max(int(self.chunk_mebibytes * MEBIBYTE) // 64, 1) * 64


class BlobConfig(Section):
    """Storage of past versions, checkpoints and replays."""

    url: str = Field("", description="Folder, or prefix in a bucket: s3://BUCKET/PREFIX, gs://..., az://CONTAINER/"
                     "PREFIX; empty: blobs/ in the run. Credentials come from the environment or the pod's identity.")
    adopt: str = Field("", description="Id of another run of this name whose blobs this run takes over, as the refusal "
                       "at the start names it; that run must not write any more.")


class TelemetryConfig(Section):
    """Metrics and logs."""

    metrics_port: int = Field(0, ge=0, le=65535, description="Port of the metrics page; 0: any free one.")
    metrics_host: str = Field("127.0.0.1", description="Listen address of the metrics page; :: is every "
                              "address, IPv4 and IPv6.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Minimum level of log records.")
    log_json: bool = Field(False, description="Write logs as one JSON object per line instead of text.")


class TracingConfig(Section):
    """OpenTelemetry traces of game steps and of requests to the REST API."""

    endpoint: str | None = Field(None, description="Base URL of a collector that takes OTLP over HTTP, such as "
                                 "http://collector:4318; null: no traces. Needs the packages of five[tracing]; headers "
                                 "come from the environment variable OTEL_EXPORTER_OTLP_HEADERS.")
    sampled_steps: float = Field(0.0001, ge=0, le=1, description="Share of the rollouts' steps that are traced; a step "
                                 "is one timestep of all games of a group.")
    sampled_requests: float = Field(0.01, ge=0, le=1, description="Share of the REST requests without a trace context "
                                    "that are traced; the others follow their caller's.")

    @field_validator("endpoint")
    @classmethod
    def _is_a_base_url(cls, url: str | None) -> str | None:
        """Refuse what no exporter can connect to. Errors do not repeat the URL, which may contain a password."""
        if url is not None:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
                raise ValueError("expected http://HOST:PORT or https://HOST:PORT, to which /v1/traces is appended")
            if parts.username is not None:
                raise ValueError("a URL without user and password is allowed: set OTEL_EXPORTER_OTLP_HEADERS instead")
        return url


class AllocatorConfig(Section):
    """The C allocator of the process."""

    tune: bool = Field(True, description="Keep freed memory in the process, so that large messages and parameters "
                       "reuse pages.")


class LifecycleConfig(Section):
    """Heartbeat, draining and liveness of a service."""

    grace_seconds: float = Field(20.0, gt=0, description="Time to drain after SIGTERM before the process exits.")
    heartbeat_seconds: float = Field(2.0, ge=0.01, description="Interval of a service's heartbeat.")
    lease_seconds: float = Field(10.0, gt=0, description="Time without a heartbeat after which a service is dead.")
    watchdog_seconds: float = Field(300.0, ge=5, description="Time without progress of a critical loop (event loop, "
                                    "forward passes, learning) after which the process is not alive and exits.")
    poll_seconds: float = Field(1.0, ge=0.01, description="Interval at which a service reads the run's status.")
    pause_timeout_seconds: float = Field(60.0, gt=0, description="Time for services to become idle in a pause. After "
                                         "it an event names those that are not. The pause continues to wait.")

    @model_validator(mode="after")
    def _outlives_heartbeats(self) -> "LifecycleConfig":
        if self.lease_seconds < 2 * self.heartbeat_seconds:
            raise ValueError("lease_seconds must be at least twice heartbeat_seconds, or one late beat ends a lease")
        return self
