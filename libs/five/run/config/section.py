"""The base class of a configuration's sections."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A frozen section that refuses unknown keys and validates its defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)
