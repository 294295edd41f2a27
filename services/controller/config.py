"""Configuration of the controller service."""

from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.scaling.rules import ScalingRule


class ScaledDeployment(ScalingRule):
    """A Deployment whose size the autoscaler sets."""

    deployment: str = Field(
        "", pattern=r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$", description="Name of the Deployment, in the "
        "controller's namespace. Empty: this kind is not scaled.")


class RolloutScaling(ScaledDeployment):
    """Rollouts follow sample reuse."""

    max: int = Field(16, ge=1, description="Pods there are at most.")
    target: float = Field(1.0, gt=0, description="Sample reuse without pacing: buffer.sample_reuse is what it should "
                          "be.")
    tolerance: float = Field(0.05, gt=0, lt=1, description="Relative band around the target in which nothing changes.")


class InferenceScaling(ScaledDeployment):
    """Inference follows queue time."""

    max: int = Field(4, ge=1, description="Pods there are at most.")
    target: float = Field(0.02, gt=0, description="Mean seconds that a request waits for its batch. Several times the "
                          "server's queue_delay_us; about the time of a forward pass.")
    tolerance: float = Field(0.2, gt=0, lt=1, description="Relative band around the target in which nothing changes.")
    cooldown_seconds: float = Field(600.0, ge=0, description="Time after a change in which nothing else is changed: "
                                    "streams come to a new server by and by, within rpc.stream_max_seconds.")


class AutoscalerConfig(BaseModel):
    """Rollouts by sample reuse, inference by queue time, through the Kubernetes API. Off outside a cluster."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    enabled: bool = Field(False, description="Whether the controller sets the sizes of the rollout and inference "
                          "Deployments. Nothing else may own their replicas then.")
    interval_seconds: float = Field(15.0, gt=0, description="Time between two looks.")
    window_seconds: float = Field(60.0, gt=0, description="Time over which signals are measured; several times "
                                  "lifecycle.heartbeat_seconds.")
    timeout_seconds: float = Field(5.0, gt=0, description="Time a request to the Kubernetes API may take.")
    deletion_cost: bool = Field(
        False, description="Before rollouts shrink, mark the pods that have done least, so that they go first. Needs "
        "list and patch of pods.")
    rollout: RolloutScaling = Field(default_factory=RolloutScaling, description="The rollout pods.")
    inference: InferenceScaling = Field(default_factory=InferenceScaling, description="The inference pods.")


class LimitsConfig(BaseModel):
    """What a request to the REST API may take. Rates are token buckets: so many a second, up to the burst at once."""

    model_config = ConfigDict(extra="forbid", frozen=True)

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


class OperationsConfig(BaseModel):
    """How long the steps of a surgery may take, and how often one is tried. Past a deadline before the cut-over the run
    is put back as it was; after it who is waited for is said again."""

    model_config = ConfigDict(extra="forbid", frozen=True)

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


class ControllerConfig(BaseModel):
    """The REST API of a run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

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
