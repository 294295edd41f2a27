"""Initial normalisation statistics of a new input."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from five.agent.surgery.remap import Array, TensorRemap
from five.agent.surgery.tensor_labels import field_of

MAX_INPUT = 1e12  # its square, summed over rows, stays finite in float32
Finite = Annotated[float, Field(ge=-MAX_INPUT, le=MAX_INPUT)]


class InputPrior(BaseModel):
    """Initial mean and deviation of a field, weighted as ``rows`` observed rows."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    mean: Finite = 0.0
    std: Annotated[float, Field(gt=0, le=MAX_INPUT)] = 1.0
    rows: Annotated[int, Field(ge=1, le=10**9)] = 10_000


def write_priors(prior: Mapping[str, InputPrior], name: str, remap: TensorRemap, array: Array) -> None:
    """Write the priors of new fields into one of the normaliser's three vectors, in place.

    A field without a prior keeps count 0. It is not normalised until the first data arrive, and then by their
    statistics.
    """
    if not name.startswith("normaliser."):
        return
    (axis,), (new,) = remap.labelled.axes, remap.new
    for i in new:
        if given := prior.get(field_of(axis.labels[i])):
            array[i] = {"normaliser.count": float(given.rows), "normaliser.mean": given.mean,
                        "normaliser.squares": given.std**2 * given.rows}[name]
