"""Configuration of the agent: the model, its learning, and the league it plays in.

Names and defaults are those of Berner et al. 2019 (the Rerun column of table 2) where the paper prints them.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


# --------------------------------------------------------------------------------------------------------- the model


class ModelConfig(_Section):
    """Sizes of the network (Berner et al. 2019, appendix H). The defaults are the paper's where it prints them;
    the other widths are chosen so that the parameter count comes near the paper's 158,502,815."""

    lstm: int = Field(4096, ge=4, description="Units of the single-layer LSTM.")
    lstm_input: int = Field(4096, ge=4, description="Width of the fully connected layer that feeds the LSTM.")
    cross_hero_share: float = Field(
        0.25, ge=0, le=1, description="First share of that vector that is max-pooled over the heroes of a team.")
    key: int = Field(
        128, ge=4, description="Width of unit keys, of target-unit queries and of the primary actions' embeddings.")
    unit_hidden: int = Field(512, ge=4, description="First layer of a unit set.")
    unit: int = Field(512, ge=4, description="Second layer of a unit set: its first `key` values are the unit's key.")
    set_hidden: int = Field(128, ge=4, description="First layer of the sets of modifiers, abilities, items, pickups.")
    set: int = Field(128, ge=4, description="Second layer of these sets.")
    unit_embedding: int = Field(64, ge=1, description="Width of a unit type's embedding.")
    animation_embedding: int = Field(16, ge=1, description="Width of an animation's embedding.")
    modifier_embedding: int = Field(64, ge=1, description="Width of a modifier's embedding.")
    ability_embedding: int = Field(64, ge=1, description="Width of an ability's embedding.")
    item_embedding: int = Field(64, ge=1, description="Width of an item's embedding, also as next purchase.")
    pickup_embedding: int = Field(16, ge=1, description="Width of a pickup's embedding.")
    build_embedding: int = Field(16, ge=1, description="Width of a scripted build's embedding.")
    area_embedding: int = Field(16, ge=1, description="Width of the embedding of an area effect on the nearby map.")
    conv_filters: int = Field(32, ge=1, description="Filters of each of the two layers over minimap and nearby map.")
    auxiliary_hidden: int = Field(128, ge=4, description="Hidden layer of the auxiliary heads.")
    input_clip: float = Field(
        5.0, gt=0, description="Every normalised input is clipped to this many standard deviations.")
    precision: Literal["float32", "bfloat16"] = Field(
        "float32", description="bfloat16: layers run under autocast; parameters, state and outputs stay float32.")

    @model_validator(mode="after")
    def _keys_fit(self) -> "ModelConfig":
        if self.key > self.unit:
            raise ValueError(f"key ({self.key}) is cut from a unit's row, so it may not exceed unit ({self.unit})")
        return self

    @property
    def pooled(self) -> int:
        """Values of the LSTM's input that are max-pooled over the heroes of a team."""
        return int(self.lstm_input * self.cross_hero_share)


# ------------------------------------------------------------------------------------------------------ the learning
