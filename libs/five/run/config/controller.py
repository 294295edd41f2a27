"""Sections of the controller service."""

import ipaddress
import re

from pydantic import Field, field_validator

from five.run.config.autoscaler import AutoscalerConfig
from rapid.section import Section

LOOPBACK = ("127.0.0.1", "::1")
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
_PATH_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)*")


class LimitsConfig(Section):
    """Limits of the REST API. Rates are token buckets: a steady rate, and a burst at once."""

    body_bytes: int = Field(1 << 20, ge=1 << 10, le=64 << 20, description="Largest body of a request.")
    body_seconds: float = Field(10.0, gt=0, description="Time in which a request's body must arrive.")
    header_seconds: float = Field(10.0, gt=0, description="Time in which a request's headers must arrive.")
    request_seconds: float = Field(30.0, gt=0, description="Time in which a response must begin.")
    keep_alive_seconds: int = Field(75, ge=1, description="Time for which an idle connection stays open for the next "
                                    "request. Longer than a reverse proxy's own, or it sends requests into "
                                    "connections that close.")
    store_seconds: float = Field(1.0, gt=0, description="Time that Redis may take before a request is answered with "
                                 "503.")
    write_seconds: float = Field(30.0, gt=0, description="Time for which a client may leave a response unread.")
    concurrent_requests: int = Field(256, ge=1, description="Requests handled at once.")
    connections: int = Field(1024, ge=1, description="Open connections. Beyond it the connection that has been idle "
                             "for longest is closed; if none is idle, a new one gets answers to probes only.")
    connections_per_address: int = Field(256, ge=1, description="Open connections of one address (IPv6: one /64 "
                                         "network), trusted proxies excepted.")
    streams: int = Field(64, ge=1, description="Open clients of /v1/stream, consoles included.")
    viewers: int = Field(64, ge=1, description="Viewers of live games.")
    spectators: int = Field(32, ge=1, description="Spectators of games of people.")
    players: int = Field(16, ge=1, description="People who play.")
    drafts: int = Field(8, ge=1, description="Analyses of drafts requested at once; one is computed, the others "
                        "wait.")
    viewer_share: float = Field(0.25, gt=0, le=1, description="Largest share of the concurrent requests, streams, live "
                                "viewers and spectators that one viewer's token, or one address without a token, may "
                                "use.")
    operator_share: float = Field(0.25, ge=0, lt=1, description="Share of the same that only operators may use.")
    requests_per_second: float = Field(1000.0, ge=0.001, description="Request rate of all viewers together.")
    burst: float = Field(2000.0, ge=1, description="Requests of all viewers at once.")
    client_requests_per_second: float = Field(500.0, ge=0.001, description="Request rate of one token, or of one "
                                              "address with auth off.")
    client_burst: float = Field(1000.0, ge=1, description="Requests of one token at once.")
    anonymous_requests_per_second: float = Field(20.0, ge=0.001, description="Rate of requests without a valid token "
                                                 "from one address (IPv6: one /64 network). A trusted proxy may send "
                                                 "five times as many, all addresses together ten times.")
    anonymous_burst: float = Field(200.0, ge=1, description="Requests without a valid token of one address at once.")
    failed_logins_per_second: float = Field(1.0, ge=0.001, description="Rate at which one address may fail to log "
                                            "in: requests to /v1 without a valid token or cookie, and invalid codes. "
                                            "More are answered with 429. A trusted proxy may send five times as many, "
                                            "all addresses together ten times.")
    failed_logins_burst: float = Field(60.0, ge=1, description="Failures to log in of one address at once.")
    logins_per_second: float = Field(1.0, ge=0.001, description="Rate at which one token may create sessions and login "
                                     "links.")
    logins_burst: float = Field(60.0, ge=1, description="Sessions and login links of one token at once.")
    sessions_per_token: int = Field(64, ge=1, le=1000, description="Sessions, and unused login links, of one token. "
                                    "The oldest end first.")


class OperationsConfig(Section):
    """Deadlines of the steps of a surgery.

    If a deadline passes before the cut-over, the run is restored. After the cut-over the operation goes on and names
    the services it waits for.
    """

    attempts: int = Field(3, ge=1, description="Attempts of a step, and optimizers that may end while they carry it "
                          "out.")
    pause_seconds: float = Field(300.0, gt=0, description="Deadline for all services to become idle.")
    check_seconds: float = Field(900.0, gt=0, description="Deadline for measuring a plan.")
    checkpoint_seconds: float = Field(600.0, gt=0, description="Deadline for writing the checkpoint.")
    transform_seconds: float = Field(1800.0, gt=0, description="Deadline for making and measuring the new checkpoint.")
    publish_seconds: float = Field(900.0, gt=0, description="Deadline for uploading the new version and the cut-over.")
    renew_seconds: float = Field(300.0, gt=0, description="Deadline for every service to run under the new record.")

    def seconds(self) -> dict[str, float]:
        """Return the deadline of each step."""
        return {name.removesuffix("_seconds"): value for name, value in self if name.endswith("_seconds")}


class ControllerConfig(Section):
    """Controller: the REST API of a run."""

    host: str = Field("127.0.0.1", description="Address on which the REST API listens; :: is every address, IPv4 and "
                      "IPv6.")
    port: int = Field(0, ge=0, le=65535, description="Port on which the REST API listens; 0: any free port.")
    auth: bool = Field(True, description="Whether requests need a bearer token. Switch it off only on a machine that "
                       "nobody else can reach.")
    tokens_file: str = Field("", description="JSON file with the named tokens of the REST API, as hashes. It is read "
                             "again when it changes. Empty: environment variable FIVE_TOKENS_FILE.")
    path_prefix: str = Field("", description="Path of the console and the REST API behind a reverse proxy, such as "
                             "/five. Requests with and without it are answered.")
    hosts: list[str] = Field(
        [], description="Host names of the console and the REST API, such as five.example.org. With auth off, or with "
        "names given, requests with another name in Host are refused; localhost, addresses and the name in host are "
        "always allowed.")
    trusted_proxies: list[str] = Field(
        list(LOOPBACK), description="Addresses or networks of reverse proxies whose X-Forwarded-For and "
        "X-Forwarded-Proto name the client, such as 10.0.0.0/8. Without it the limits of one address apply to the "
        "proxy.")
    limits: LimitsConfig = Field(default_factory=LimitsConfig, description="Limits of requests.")
    keep_serving: bool = Field(False, description="Whether the controller keeps running when the run is stopped, so "
                               "that REST can start it again. For containers; a local cluster ends as a whole.")
    reconcile_seconds: float = Field(1.0, ge=0.01, description="Interval at which the run's services are checked.")
    operations: OperationsConfig = Field(default_factory=OperationsConfig, description="Deadlines of surgery.")
    autoscaler: AutoscalerConfig = Field(default_factory=AutoscalerConfig, description="Sizes of the rollout and "
                                         "inference pools in a cluster.")

    @field_validator("path_prefix")
    @classmethod
    def _is_path(cls, value: str) -> str:
        if not _PATH_PREFIX.fullmatch(value):
            raise ValueError('expected a path such as "/five": it begins with "/", does not end with one, and has '
                             'letters, digits, ".", "_", "~" and "-" only')
        return value

    @field_validator("hosts")
    @classmethod
    def _are_host_names(cls, values: list[str]) -> list[str]:
        for value in values:
            if not _HOST_NAME.fullmatch(value):
                raise ValueError("expected host names without a port, such as five.example.org")
        return [value.lower() for value in values]

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, values: list[str]) -> list[str]:
        for value in values:
            try:
                ipaddress.ip_network(value)
            except ValueError as error:
                reason = ": a network has host bits set" if "host bits" in str(error) else ""
                raise ValueError(f"expected addresses or networks such as 10.0.0.0/8{reason}") from None
        return values
