"""Route /v1/services: live service instances."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.http.dependencies import ContextDep, Viewer

router = APIRouter(tags=["services"])


class ServiceInstance(BaseModel):
    """A process of the run that sends heartbeats."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "kind": "rollout", "id": "0", "address": "", "metrics_address": "127.0.0.1:40123",
        "started_at": 1789000000.0, "beaten_at": 1789000100.0, "stats": {"games": 16, "inference": 0.4}}]})

    kind: str = Field(description="Kind of service.")
    id: str = Field(description="Id of the instance.")
    address: str = Field(description="host:port of its RPC server; '' without one.")
    metrics_address: str = Field(description="host:port of its metrics page; '' without one.")
    started_at: float = Field(description="Start time, seconds since the epoch.")
    beaten_at: float = Field(description="Time of its last heartbeat, seconds since the epoch.")
    stats: dict[str, Any] = Field(description="Reported statistics, depending on the kind.")


@router.get("/services")
def services(caller: Viewer, context: ContextDep) -> list[ServiceInstance]:
    """Return the live service instances with their statistics."""
    return [ServiceInstance.model_validate(i._asdict()) for i in context.leases.live()]
