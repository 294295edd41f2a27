"""Sections of the controller's autoscaler."""

from pydantic import Field, model_validator

from five.run.config.section import Section


class ScalingRule(Section):
    """Bounds and pace of one kind of pods."""

    min: int = Field(1, ge=1, description="Pods there are at least.")
    max: int = Field(8, ge=1, description="Pods there are at most.")
    target: float = Field(1.0, gt=0, description="Value of the signal to hold: for rollouts sample reuse without "
                          "pacing, for inference the seconds that a request waits for its batch.")
    tolerance: float = Field(0.1, gt=0, lt=1, description="Relative band around the target in which nothing changes.")
    up_window_seconds: float = Field(60.0, gt=0, description="More pods are asked for once the signal has wanted them "
                                     "for so long.")
    down_window_seconds: float = Field(600.0, gt=0, description="Fewer pods are asked for once the signal has wanted "
                                       "fewer for so long.")
    max_step_fraction: float = Field(0.5, gt=0, le=10, description="Growth of one change, as a fraction of what is "
                                     "there; always at least one pod.")
    max_shrink_fraction: float = Field(0.1, gt=0, le=1, description="The same for shrinking: pods that go lose the "
                                       "segments they have begun.")
    cooldown_seconds: float = Field(120.0, ge=0, description="Time after a change in which nothing else is changed.")

    @model_validator(mode="after")
    def _ordered(self) -> "ScalingRule":
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}")
        if self.down_window_seconds < self.up_window_seconds:
            raise ValueError(f"down_window_seconds {self.down_window_seconds:g} is below up_window_seconds "
                             f"{self.up_window_seconds:g}: pods would go faster than they come")
        return self


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


class AutoscalerConfig(Section):
    """Rollouts by sample reuse, inference by queue time, through the Kubernetes API. Off outside a cluster."""

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
