"""The run's configuration."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Response

from five.services.controller.http.dependencies import Here, Viewer
from five.services.controller.http.etags import tag_of, unchanged
from five.services.controller.http.problems import Problem, responses

router = APIRouter(tags=["config"])
EXAMPLE = {"name": "laptop-1v1", "seed": 1, "learning": {"batch_samples": 64}}
NoneMatch = Annotated[str | None, Header(alias="If-None-Match", max_length=1000, description="ETag of what you have: "
                                         "304 when it still is the same.")]
TAGGED: dict[int | str, dict[str, Any]] = {
    200: {"headers": {"ETag": {"description": "Tag of this state of the document.", "schema": {"type": "string"}}}},
    304: {"description": "It still is what you have."}}


@router.get("/config", response_model=dict[str, Any], responses={
    **TAGGED, **responses(_404="The run is not made yet."),
    200: {**TAGGED[200], "content": {"application/json": {"example": EXAMPLE}}}})
def config(caller: Viewer, here: Here, response: Response, have: NoneMatch = None) -> Any:
    """The run's configuration as it was started, without passwords."""
    found = here.state.config()
    if found is None:
        raise Problem(404, "the run has no configuration yet")
    tag = tag_of(found)
    if unchanged(have, tag):
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return found
