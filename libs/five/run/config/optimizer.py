"""Configuration of the optimizer service."""

from pydantic import Field, ValidationInfo, field_validator, model_validator

from five.run.config.section import Section


class OptimizerConfig(Section):
    """One pool of optimizers that average their gradients (Berner et al. 2019, section 4.1)."""

    max_optimizers: int = Field(512, ge=1, le=4096, description="Most optimizers that this configuration is made for; "
                                "more are refused. The batch grows with every one, and the rates are set for it.")
    optimizers: int = Field(1, ge=1, le=4096, description="Optimizer processes (the paper: one a GPU, 512 in Rerun).")
    device: str = Field("cpu", pattern=r"^(cpu|cuda(:\d+)?)$", description="Where the optimizer computes.")
    threads: int = Field(1, ge=1, description="CPU threads of the optimizer's computation.")
    drawing_threads: int = Field(1, ge=1, le=64, description="CPU threads that unpack the next batch's samples while a "
                                 "step is computed; as many more as a fast device needs to be fed.")
    bucket_mebibytes: int = Field(25, ge=1, le=4096, description="Gradients are averaged over the optimizers in "
                                  "buckets of at least this size, while the backward pass goes on.")
    cuda_graphs: bool = Field(True, description="Where compute.cuda_graphs is on, gradient steps are recorded as well. "
                              "false: only inference has graphs. A step kernel by kernel is the faster one of large "
                              "models, and of several optimizers the one that averages while the backward pass goes "
                              "on: a recorded one averages behind it.")
    addresses: list[str] = Field(
        [], description="Where each optimizer takes segments in, host:port in order of rank; or one pattern with "
        "{rank} in it, or with {node}: then ranks_per_node optimizers listen on each node, at the pattern's port and "
        "those after it. Empty in a local cluster: it picks free ports.")
    ranks_per_node: int = Field(1, ge=1, le=64, description="Optimizers on one node, where addresses is a pattern "
                                "with {node} in it.")
    checkpoint_every_versions: int = Field(10, ge=1, description="Versions between two checkpoints.")
    checkpoints_kept: int = Field(3, ge=1, description="Checkpoints kept; older ones are removed.")
    rendezvous: str = Field("", description="torchrun's rendezvous when there is more than one optimizer, host:port. "
                            "Empty in a local cluster: it picks a free port.")

    @field_validator("optimizers")
    @classmethod
    def _as_many_as_it_is_made_for(cls, optimizers: int, info: ValidationInfo) -> int:
        most = info.data.get("max_optimizers")
        if most is not None and optimizers > most:
            raise ValueError(f"at most {most} optimizers here (services.optimizer.max_optimizers): more need another "
                             "preset, or schedules and batch sizes set for them and max_optimizers raised")
        return optimizers

    @model_validator(mode="after")
    def _one_address_each(self) -> "OptimizerConfig":
        pattern = len(self.addresses) == 1 and ("{rank}" in self.addresses[0] or self._per_node)
        if self.addresses and not pattern and len(self.addresses) != self.optimizers:
            raise ValueError(f"addresses lists {len(self.addresses)} for {self.optimizers} optimizers: give one each, "
                             "or one pattern with {rank} or {node} in it")
        if self._per_node:
            if self.optimizers % self.ranks_per_node:
                raise ValueError(f"{self.optimizers} optimizers cannot be spread over nodes of {self.ranks_per_node} "
                                 "each (ranks_per_node): every node runs as many")
            if not self.addresses[0].rpartition(":")[2].isdigit():
                raise ValueError(f"addresses: {self.addresses[0]!r} has no port; write it as host-{{node}}:port")
        return self

    @property
    def _per_node(self) -> bool:
        return len(self.addresses) == 1 and "{node}" in self.addresses[0]

    def address(self, rank: int) -> str:
        """Where the optimizer of that rank takes segments in, host:port.

        With {node} in the pattern it is the address of the rank-th process, counted node by node; which rank torchrun
        gave that process makes no difference to who sends there.
        """
        if not self._per_node:
            return self.addresses[0].format(rank=rank) if len(self.addresses) == 1 else self.addresses[rank]
        host, _, port = self.addresses[0].rpartition(":")
        return f"{host.format(node=rank // self.ranks_per_node)}:{int(port) + rank % self.ranks_per_node}"

    def listening_port(self, rank: int, local_rank: int) -> int:
        """The port that the process of that rank listens on, the local_rank-th of its machine; 0: any free one."""
        if not self.addresses:
            return 0
        own = self.address(local_rank if self._per_node else rank)
        return int(own.rpartition(":")[2])
