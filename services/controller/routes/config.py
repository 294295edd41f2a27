"""Route /v1/config: the run's configuration."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Response

from five.services.controller.http.dependencies import ContextDep, Viewer
from five.services.controller.http.etags import etag, matches_etag
from five.services.controller.http.problems import Problem, responses

router = APIRouter(tags=["config"])
EXAMPLE = {"name": "laptop-1v1", "seed": 1, "learning": {"batch_samples": 64}}
IfNoneMatch = Annotated[str | None, Header(alias="If-None-Match", max_length=1000, description="ETag of your copy; "
                                           "304 if it is current.")]
ETAG_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"headers": {"ETag": {"description": "Entity tag of this revision.", "schema": {"type": "string"}}}},
    304: {"description": "Your copy is current."}}


@router.get("/config", response_model=dict[str, Any], responses={
    **ETAG_RESPONSES, **responses(_404="There is no such run yet."),
    200: {**ETAG_RESPONSES[200], "content": {"application/json": {"example": EXAMPLE}}}})
def config(caller: Viewer, context: ContextDep, response: Response, have: IfNoneMatch = None) -> Any:
    """Return the run's configuration, without passwords."""
    found = context.state.config()
    if found is None:
        raise Problem(404, "the run has no configuration yet")
    tag = etag(found)
    if matches_etag(have, tag):
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return found
