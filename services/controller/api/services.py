"""Live service instances."""

from typing import Any

from fastapi import APIRouter

from services.controller.api.dependencies import Here, Viewer

router = APIRouter(tags=["services"])


@router.get("/services")
def services(caller: Viewer, here: Here) -> list[dict[str, Any]]:
    """Live service instances with their statistics."""
    return [i._asdict() for i in here.leases.live()]
