"""Settings of torchrun's elastic agent."""

# Environment variables of the agent. Each generation of the group gets a new store. When the agent ends it waits for
# its ranks, which write their checkpoint first and end themselves in time.
AGENT_ENVIRONMENT = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "3600"}
