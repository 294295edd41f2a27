"""Configuration of the controller service."""

from pydantic import Field

from five.run.config.autoscaler import AutoscalerConfig
from five.run.config.section import Section


class LimitsConfig(Section):
    """What a request to the REST API may take. Rates are token buckets: so many a second, up to the burst at once."""

    body_bytes: int = Field(1 << 20, ge=1 << 10, le=64 << 20, description="Bytes a request's body may have.")
    body_seconds: float = Field(10.0, gt=0, description="Time in which a request's body has to be there.")
    header_seconds: float = Field(10.0, gt=0, description="Time in which a request's headers have to be there.")
    request_seconds: float = Field(30.0, gt=0, description="Time in which an answer has to begin.")
    store_seconds: float = Field(1.0, gt=0, description="Time a Redis may take to answer before a request is answered "
                                 "with 503.")
    concurrent_requests: int = Field(256, ge=1, description="Requests that are worked on at once.")
    connections: int = Field(1024, ge=1, description="Connections that are open at once.")
    streams: int = Field(64, ge=1, description="Clients of /v1/stream, and consoles that are open, at once.")
    viewers: int = Field(64, ge=1, description="Who watches live games at once.")
    players: int = Field(16, ge=1, description="Who plays, or watches games of people, at once.")
    requests_per_second: float = Field(1000.0, gt=0, description="Requests of all clients together.")
    burst: float = Field(2000.0, ge=1, description="Requests of all clients at once.")
    client_requests_per_second: float = Field(500.0, gt=0, description="Requests from one address.")
    client_burst: float = Field(1000.0, ge=1, description="Requests from one address at once.")
    failed_logins_per_second: float = Field(1.0, gt=0, description="Requests without a valid token from one address "
                                            "that are told so; more are told to slow down.")
    failed_logins_burst: float = Field(60.0, ge=1, description="Such requests at once.")


class OperationsConfig(Section):
    """How long the steps of a surgery may take, and how often one is tried. Past a deadline before the cut-over the run
    is put back as it was; after it who is waited for is said again."""

    attempts: int = Field(3, ge=1, description="How often a step is tried, and how many optimizers may end while they "
                          "carry one out.")
    pause_seconds: float = Field(300.0, gt=0, description="Until everybody has come to rest.")
    check_seconds: float = Field(900.0, gt=0, description="Until a plan is measured.")
    checkpoint_seconds: float = Field(600.0, gt=0, description="Until the optimizer has written its checkpoint.")
    transform_seconds: float = Field(1800.0, gt=0, description="Until the new checkpoint is made and measured.")
    publish_seconds: float = Field(900.0, gt=0, description="Until the new version is uploaded and the run cut over.")
    renew_seconds: float = Field(300.0, gt=0, description="Until every service is up under the new record.")

    def seconds(self) -> dict[str, float]:
        """The deadlines by step."""
        return {name.removesuffix("_seconds"): value for name, value in self if name.endswith("_seconds")}


class ControllerConfig(Section):
    """The REST API of a run."""

    host: str = Field("127.0.0.1", description="Address the REST API listens on.")
    port: int = Field(0, ge=0, le=65535, description="Port the REST API listens on; 0: any free one.")
    auth: bool = Field(True, description="Whether requests need a bearer token. Only switch this off on a machine "
                       "that nobody else reaches.")
    tokens_file: str = Field("", description="JSON file with the named tokens of the REST API, as hashes; read again "
                             "when it changes. Empty: environment variable FIVE_TOKENS_FILE.")
    limits: LimitsConfig = Field(default_factory=LimitsConfig, description="What requests may take.")
    stay: bool = Field(False, description="Go on when the run is stopped, so that REST can start it again; for "
                       "containers. A local cluster ends as a whole.")
    reconcile_seconds: float = Field(1.0, gt=0, description="Time between two looks at the run's services.")
    operations: OperationsConfig = Field(default_factory=OperationsConfig, description="Deadlines of surgery.")
    autoscaler: AutoscalerConfig = Field(default_factory=AutoscalerConfig, description="Sizes of the rollout and "
                                         "inference pools in a cluster.")
