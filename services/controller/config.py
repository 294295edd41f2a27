"""Configuration of the controller service."""

from pydantic import BaseModel, ConfigDict, Field


class ControllerConfig(BaseModel):
    """The REST face of a run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = Field("127.0.0.1", description="Address the REST API listens on.")
    port: int = Field(0, ge=0, le=65535, description="Port the REST API listens on; 0: any free one.")
    auth: bool = Field(True, description="Whether requests need a bearer token. Only switch this off on a machine "
                       "that nobody else reaches.")
    reconcile_seconds: float = Field(1.0, gt=0, description="Time between two looks at the run's services.")
