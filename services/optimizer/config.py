"""Configuration of the optimizer service."""

from pydantic import BaseModel, ConfigDict, Field, model_validator

# What torchrun's agent has to find in its environment: a new store for every generation of the group.
AGENT_ENVIRONMENT = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}

class OptimizerConfig(BaseModel):
    """One pool of optimizers that average their gradients (Berner et al. 2019, section 4.1)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    optimizers: int = Field(1, ge=1, le=4096, description="Optimizer processes (the paper: one a GPU, 512 in Rerun).")
    device: str = Field("cpu", pattern=r"^(cpu|cuda(:\d+)?)$", description="Where the optimizer computes.")
    threads: int = Field(1, ge=1, description="CPU threads of the optimizer's computation.")
    addresses: list[str] = Field(
        [], description="Where each optimizer takes segments in, host:port in order of rank; or one pattern with "
        "{rank} in it. Empty in a local cluster: it picks free ports.")
    checkpoint_every_versions: int = Field(10, ge=1, description="Versions between two checkpoints.")
    checkpoints_kept: int = Field(3, ge=1, description="Checkpoints kept; older ones are removed.")
    rendezvous: str = Field("", description="torchrun's rendezvous when there is more than one optimizer, host:port. "
                            "Empty in a local cluster: it picks a free port.")

    @model_validator(mode="after")
    def _one_address_each(self) -> "OptimizerConfig":
        pattern = len(self.addresses) == 1 and "{rank}" in self.addresses[0]
        if self.addresses and not pattern and len(self.addresses) != self.optimizers:
            raise ValueError(f"addresses lists {len(self.addresses)} for {self.optimizers} optimizers: give one each, "
                             "or one pattern with {rank} in it")
        return self

    def address(self, rank: int) -> str:
        """Where the optimizer of that rank takes segments in, host:port."""
        return self.addresses[0].format(rank=rank) if len(self.addresses) == 1 else self.addresses[rank]
