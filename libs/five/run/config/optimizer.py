"""Section of the optimizer service."""

from pydantic import Field, ValidationInfo, field_validator, model_validator

from five.run.config.address import Address, check_address
from rapid.section import Section


class OptimizerConfig(Section):
    """Optimizers: one pool that averages its gradients (Berner et al. 2019, section 4.1)."""

    max_optimizers: int = Field(512, ge=1, le=4096, description="Most optimizers that this configuration is made for; "
                                "more are refused. The batch grows with each optimizer, and the learning rates are "
                                "set for it.")
    optimizers: int = Field(1, ge=1, le=4096, description="Optimizer processes. The paper uses one a GPU, 512 in "
                            "Rerun.")
    device: str = Field("cpu", pattern=r"^(cpu|cuda(:\d+)?)$", description="Device of the gradient steps.")
    threads: int = Field(1, ge=1, le=1024, description="CPU threads of the computation.")
    collate_threads: int = Field(1, ge=1, le=64, description="CPU threads that unpack the next batch's samples during "
                                 "a gradient step. A fast device needs more.")
    bucket_mebibytes: int = Field(25, ge=1, le=4096, description="Smallest size of the buckets in which gradients are "
                                  "averaged over the optimizers during the backward pass.")
    cuda_graphs: bool = Field(True, description="Whether gradient steps are recorded as CUDA graphs where "
                              "compute.cuda_graphs is on. false: only inference uses graphs. Large models are faster "
                              "without: a recorded step averages gradients after the backward pass, not during it.")
    addresses: list[Address] = Field(
        [], description="Addresses at which the optimizers receive segments, host:port in order of rank. Or one "
        "pattern with {rank}; or one with {node}: ranks_per_node optimizers then listen on each node, at the "
        "pattern's port and the following ones. Empty: a local cluster picks free ports.")
    ranks_per_node: int = Field(1, ge=1, le=64, description="Optimizers on one node, if addresses is a pattern with "
                                "{node}.")
    checkpoint_every_versions: int = Field(10, ge=1, description="Versions from one checkpoint to the next.")
    checkpoints_kept: int = Field(3, ge=1, description="Newest checkpoints that are kept.")
    recover_checkpoint: str = Field(
        "", pattern=r"^[0-9a-f.]{0,100}$", description="Name of a checkpoint file that the run's state does not list, "
        "as after a restore; the optimizer continues from it. It is not verified: any writer of the blob store could "
        "have forged it. Empty: only listed and signed checkpoints.")
    start_timeout_seconds: float = Field(
        1800.0, ge=120, description="Longest time that optimizer 0 may take to read the checkpoint, while the others "
        "wait for its state; then the group restarts. A checkpoint of the paper's model has 2,500 MB.")

    @field_validator("optimizers")
    @classmethod
    def _within_maximum(cls, optimizers: int, info: ValidationInfo) -> int:
        most = info.data.get("max_optimizers")
        if most is not None and optimizers > most:
            raise ValueError(f"at most {most} are allowed (services.optimizer.max_optimizers). For more, use another "
                             "preset, or adjust schedules and batch sizes and raise max_optimizers")
        return optimizers

    @model_validator(mode="after")
    def _one_address_each(self) -> "OptimizerConfig":
        pattern = len(self.addresses) == 1 and ("{rank}" in self.addresses[0] or self._per_node)
        if self.addresses and not pattern and len(self.addresses) != self.optimizers:
            raise ValueError(f"addresses lists {len(self.addresses)} for {self.optimizers} optimizers: list one for "
                             "each, or one pattern with {rank} or {node}")
        if self._per_node:
            if self.optimizers % self.ranks_per_node:
                raise ValueError(f"{self.optimizers} optimizers cannot be spread over nodes of {self.ranks_per_node}: "
                                 "optimizers must be a multiple of ranks_per_node")
        try:
            for rank in {0, self.ranks_per_node - 1} if pattern else ():
                check_address(self.address(rank))
        except (LookupError, AttributeError):
            raise ValueError(f"addresses: {self.addresses[0]!r}: only {{rank}} or {{node}} is allowed in "
                             "braces") from None
        return self

    @property
    def _per_node(self) -> bool:
        return len(self.addresses) == 1 and "{node}" in self.addresses[0]

    def address(self, rank: int) -> str:
        """Return the address at which the optimizer of ``rank`` receives segments, host:port.

        With {node} in the pattern it is the address of the rank-th process, counted node by node. A group may give
        that process another rank; senders do not depend on it.
        """
        if not self._per_node:
            return self.addresses[0].format(rank=rank) if len(self.addresses) == 1 else self.addresses[rank]
        host, _, port = self.addresses[0].rpartition(":")
        return f"{host.format(node=rank // self.ranks_per_node)}:{int(port) + rank % self.ranks_per_node}"

    def listening_port(self, rank: int, local_rank: int) -> int:
        """Return the port of the process of ``rank``, the local_rank-th of its machine; 0: any free port."""
        if not self.addresses:
            return 0
        own = self.address(local_rank if self._per_node else rank)
        return int(own.rpartition(":")[2])
