"""The run's configuration."""

from typing import Any

from fastapi import APIRouter

from services.controller.api.dependencies import Here, Viewer
from services.controller.problems import Problem, responses

router = APIRouter(tags=["config"])


@router.get("/config", responses=responses(_404="The run is not made yet."))
def config(caller: Viewer, here: Here) -> dict[str, Any]:
    """The run's configuration as it was started."""
    found = here.state.config()
    if found is None:
        raise Problem(404, "the run has no configuration yet")
    return dict(found)
