"""Configuration of the play service."""

from pydantic import Field

from five.run.config.section import Section


class PlayConfig(Section):
    """Games at real speed in which people take heroes, with and against trained agents (docs/play.md)."""

    enabled: bool = Field(True, description="Whether people can play.")
    address: str = Field("", description="Where the service is reached, host:port. Empty in a local cluster: it picks "
                         "a free port.")
    games: int = Field(1, ge=1, le=64, description="Games at once. Each takes about a tenth of a core while it is "
                       "played, and an answer of inference for both sides every timestep.")
    watching: int = Field(32, ge=1, le=1024, description="Players and spectators of one game at once.")
    seat_seconds: float = Field(180.0, ge=0, description="How long a hero stays its person's after the connection was "
                                "lost; the agent plays it meanwhile. Afterwards somebody else may take it.")
    empty_seconds: float = Field(180.0, gt=0, description="A game without anybody connected to it ends after so long, "
                                 "abandoned.")
    spectator_delay_seconds: float = Field(120.0, ge=0, description="How late spectators see a game.")
    orders_per_second: float = Field(60.0, gt=0, description="Orders that one person may give; more are refused. As "
                                     "many pings and changes of hands as a twelfth of it.")
    recordings: int = Field(8, ge=0, le=64, description="Games that are over and can be watched again, the newest.")
    recordings_folder: str = Field("", description="Folder in which they lie; empty: played/ in the run's folder, or "
                                   "in the temporary one where that is read-only.")
    recordings_mebibytes: int = Field(32, ge=1, le=1024, description="What they may take; the oldest make room. 5v5 "
                                      "takes 9 MiB an hour.")
    behind_kibibytes: int = Field(256, ge=16, description="Bytes that wait for one slow client at most; beyond it he "
                                  "skips to the newest frame.")
