"""Configuration of the optimizer service."""

from pydantic import BaseModel, ConfigDict, Field


class OptimizerConfig(BaseModel):
    """One pool of optimizers that average their gradients (Berner et al. 2019, section 4.1)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    optimizers: int = Field(1, ge=1, le=4096, description="Optimizer processes (the paper: one a GPU, 512 in Rerun).")
    device: str = Field("cpu", pattern=r"^(cpu|cuda(:\d+)?)$", description="Where the optimizer computes.")
    threads: int = Field(1, ge=1, description="CPU threads of the optimizer's computation.")
    addresses: list[str] = Field(
        ["127.0.0.1:7300"], min_length=1,
        description="Where each optimizer takes segments in, in order of rank. host:port.")
    checkpoint_every_versions: int = Field(10, ge=1, description="Versions between two checkpoints.")
    checkpoints_kept: int = Field(3, ge=1, description="Checkpoints kept; older ones are removed.")
    rendezvous: str = Field(
        "127.0.0.1:7399", description="torchrun's rendezvous when there is more than one optimizer. host:port.")
