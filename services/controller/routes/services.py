"""Live service instances."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.http.dependencies import Here, Viewer

router = APIRouter(tags=["services"])


class ServiceInstance(BaseModel):
    """A process of the run that gives heartbeats."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "kind": "rollout", "id": "0", "address": "", "metrics_address": "127.0.0.1:40123",
        "started_at": 1789000000.0, "beaten_at": 1789000100.0, "stats": {"games": 16, "inference": 0.4}}]})

    kind: str = Field(description="Which service.")
    id: str = Field(description="Which instance of it.")
    address: str = Field(description="host:port of its RPC; '' where it has none.")
    metrics_address: str = Field(description="host:port of its metrics page; '' where it has none.")
    started_at: float = Field(description="Seconds since the epoch.")
    beaten_at: float = Field(description="Its last heartbeat, seconds since the epoch.")
    stats: dict[str, Any] = Field(description="What it says of itself; each kind has values of its own.")


@router.get("/services")
def services(caller: Viewer, here: Here) -> list[ServiceInstance]:
    """Live service instances with their statistics."""
    return [ServiceInstance.model_validate(i._asdict()) for i in here.leases.live()]
