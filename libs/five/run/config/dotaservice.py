"""Section of the server of dotaservice's protocol."""

from typing import Literal

from pydantic import Field, field_validator, model_validator

from dota.hero_pools import expanded
from rapid.section import Section


class DotaServiceConfig(Section):
    """Server of dotaservice's protocol: games for trainers of others, over gRPC (docs/dotaservice.md). Of ``game`` it
    uses the rules; clients choose mode and heroes."""

    host: str = Field("127.0.0.1", min_length=1, description="Listen address, without authentication: its clients "
                      "send no tokens and use no TLS. :: is every address.")
    port: int = Field(13337, ge=0, le=65535, description="Port of the first game; the next games have the next ports. "
                      "0: free ports.")
    games: int = Field(1, ge=1, le=256, description="Games side by side, each with a port of its own.")
    threads: int = Field(1, ge=1, le=256, description="Games that are simulated at the same time, each by one core.")
    hero_pool: list[str] = Field(["heroes_25"], min_length=1, description="Heroes that clients may pick, as in "
                                 "game.hero_pool.")
    bot: Literal["random", "scripted-easy", "scripted", "scripted-hard"] = Field(
        "scripted", description="Player of heroes that a client leaves to the game (HERO_CONTROL_MODE_DEFAULT).")
    scripted_buying: bool = Field(True, description="Whether a script buys and carries items for controlled heroes.")
    scripted_levelling: bool = Field(False, description="Whether a script spends controlled heroes' ability points.")
    max_ticks: int = Field(900, ge=1, le=30_000, description="Most ticks (engine frames, 30 a second) that a client "
                           "may put between two observations.")
    lockstep_seconds: float = Field(10.0, ge=0, description="Time that the next observation of one side waits for the "
                                    "actions of the other, if it has sent some before. 0: the game never waits.")

    @field_validator("hero_pool")
    @classmethod
    def _named_pools(cls, given: list[str]) -> list[str]:
        return expanded(given)

    @model_validator(mode="after")
    def _ports_exist(self) -> "DotaServiceConfig":
        if self.port and self.port + self.games - 1 > 65535:
            raise ValueError(f"games {self.games}: the last game's port would be {self.port + self.games - 1}, above "
                             "65535; lower port or games")
        return self
