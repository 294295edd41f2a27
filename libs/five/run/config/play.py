"""Section of the play service."""

from pydantic import Field

from five.run.config.address import Address
from rapid.section import Section


class PlayConfig(Section):
    """Play service: games at real speed in which people play with and against trained agents (docs/play.md)."""

    enabled: bool = Field(True, description="Whether people can play.")
    address: Address = Field("", description="Address of the service, host:port. Empty: a local cluster picks a free "
                             "port.")
    games: int = Field(1, ge=1, le=64, description="Games at once. Each takes about a tenth of a core, and one "
                       "inference request for both sides every timestep.")
    max_connections: int = Field(32, ge=1, le=1024, description="Players and spectators of one game. "
                                 "Beyond it spectators are refused, players are not.")
    seat_reservation_seconds: float = Field(180.0, ge=0, description="Time for which a hero stays reserved after its "
                                            "player's connection is lost. The agent plays it meanwhile; afterwards "
                                            "another person may take it.")
    abandon_seconds: float = Field(180.0, gt=0, description="Time after which a game without connected people is "
                                   "abandoned.")
    spectator_delay_seconds: float = Field(120.0, ge=0, description="Delay with which spectators see a game.")
    orders_per_second: float = Field(60.0, gt=0, description="Commands that one person may give; more are refused. "
                                     "Pings and changes of control are limited to a twelfth of it.")
    recordings: int = Field(8, ge=0, le=64, description="Newest finished games that can be watched again.")
    recordings_folder: str = Field("", description="Folder of the recordings. Empty: played/ in the run's folder, or "
                                   "in the temporary folder if that is read-only.")
    recordings_mebibytes: int = Field(32, ge=1, le=1024, description="Size of all recordings. The oldest are deleted "
                                      "first. Five against five takes 9 MiB an hour.")
    client_backlog_kibibytes: int = Field(256, ge=16, description="Data that may wait for one slow client. Above this "
                                          "size the client skips to the newest frame.")
