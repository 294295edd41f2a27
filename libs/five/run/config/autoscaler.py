"""Sections of the controller's autoscaler."""

from pydantic import Field, model_validator

from rapid.section import Section


class ScalingRule(Section):
    """Bounds and rates of change of one kind of pods."""

    min: int = Field(1, ge=1, description="Fewest pods.")
    max: int = Field(8, ge=1, description="Most pods.")
    target: float = Field(1.0, gt=0, description="Target of the signal: for rollouts sample reuse without pacing, for "
                          "inference the seconds that a request waits for its batch.")
    tolerance: float = Field(0.1, gt=0, lt=1, description="Relative band around the target in which nothing changes.")
    up_window_seconds: float = Field(60.0, gt=0, description="Time for which the signal must ask for more pods before "
                                     "pods are added.")
    down_window_seconds: float = Field(600.0, gt=0, description="Time for which the signal must ask for fewer pods "
                                       "before pods are removed.")
    max_step_fraction: float = Field(0.5, gt=0, le=10, description="Largest growth of one change, as a fraction of the "
                                     "present pods; always at least one pod.")
    max_shrink_fraction: float = Field(0.1, gt=0, le=1, description="Largest reduction of one change, as a fraction of "
                                       "the present pods. A removed pod loses the segments it has begun.")
    cooldown_seconds: float = Field(120.0, ge=0, description="Time after a change in which nothing else changes.")

    @model_validator(mode="after")
    def _check_bounds(self) -> "ScalingRule":
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}")
        if self.down_window_seconds < self.up_window_seconds:
            raise ValueError(f"down_window_seconds {self.down_window_seconds:g} is below up_window_seconds "
                             f"{self.up_window_seconds:g}: pods would be removed faster than they are added")
        return self


class ScaledDeployment(ScalingRule):
    """A Deployment whose size the autoscaler sets."""

    deployment: str = Field(
        "", pattern=r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$", description="Name of the Deployment, in the "
        "controller's namespace. Empty: this kind is not scaled.")


class RolloutScaling(ScaledDeployment):
    """Scaling of the rollout pods by sample reuse."""

    max: int = Field(16, ge=1, description="Most pods.")
    target: float = Field(1.0, gt=0, description="Target of sample reuse without pacing. Set it to "
                          "buffer.sample_reuse.")
    tolerance: float = Field(0.05, gt=0, lt=1, description="Relative band around the target in which nothing changes.")


class InferenceScaling(ScaledDeployment):
    """Scaling of the inference pods by queue time."""

    max: int = Field(4, ge=1, description="Most pods.")
    target: float = Field(0.02, gt=0, description="Target of the mean time that a request waits for its batch: several "
                          "times the server's queue_delay_us, about the time of a forward pass.")
    tolerance: float = Field(0.2, gt=0, lt=1, description="Relative band around the target in which nothing changes.")
    cooldown_seconds: float = Field(600.0, ge=0, description="Time after a change in which nothing else changes. "
                                    "Streams move to a new server gradually, within rpc.stream_max_seconds.")


class AutoscalerConfig(Section):
    """Autoscaler: sets the sizes of the rollout and inference Deployments through the Kubernetes API."""

    enabled: bool = Field(False, description="Whether the controller sets the sizes of the rollout and inference "
                          "Deployments. No other autoscaler may then own their replicas.")
    interval_seconds: float = Field(15.0, ge=0.01, description="Interval between two decisions.")
    window_seconds: float = Field(60.0, gt=0, description="Time over which signals are measured; several times "
                                  "lifecycle.heartbeat_seconds.")
    timeout_seconds: float = Field(5.0, gt=0, description="Deadline of a request to the Kubernetes API.")
    deletion_cost: bool = Field(
        False, description="Whether the rollout pods that have done least are marked to be removed first. Needs the "
        "permissions list and patch of pods.")
    rollout: RolloutScaling = Field(default_factory=RolloutScaling, description="The rollout pods.")
    inference: InferenceScaling = Field(default_factory=InferenceScaling, description="The inference pods.")
