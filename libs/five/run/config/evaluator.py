"""Section of the evaluator service."""

from pydantic import Field, field_validator

from five.run.config.address import Address
from rapid.section import Section


class EvaluatorConfig(Section):
    """Evaluator: rates versions in games during training (Berner et al. 2019, appendix J)."""

    address: Address = Field("", description="Address of the service, host:port. Empty: a local cluster picks a free "
                             "port.")
    games: int = Field(4, ge=1, le=4096, description="Games played at a time.")
    threads: int = Field(1, ge=1, le=1024, description="Threads that step the games.")
    guard_share: float = Field(
        0.5, ge=0, le=1, description="Share of games given to the guard while a change is annealed: the newest version "
        "against the last version before the change. Without them the anneal waits at its first gate.")
    cpu_share: float = Field(
        0.0, ge=0, description="Cores that the evaluator's own process may use on average after the run's first "
        "rating; 0.01 or more. 0: no limit. A limit leaves a laptop's processor to training.")
    replays: str = Field("", description="Folder of recorded matches. Empty: replays/ in the run's folder, or in the "
                         "temporary folder if that is read-only.")
    keep_replays: int = Field(200, ge=1, description="Newest recordings of rated versions that are kept, one a "
                              "version.")
    draft_line_ups: int = Field(
        2000, ge=0, description="Most line-ups of a draft table (docs/draft.md) that is computed for each rated "
        "version. A line-up takes some milliseconds of a core. 0: none. `five draft` computes larger tables.")
    replay_days: float = Field(90.0, gt=0, description="Age after which recordings of requested matches are deleted.")
    replay_mebibytes: float = Field(2048.0, gt=0, description="Size of all recordings together. The oldest are deleted "
                                    "first.")
    enabled: bool = Field(True, description="Whether versions are rated.")

    @field_validator("cpu_share")
    @classmethod
    def _ever_runs(cls, share: float) -> float:
        if 0 < share < 0.01:
            raise ValueError("0, or at least 0.01 cores, is allowed: with less no rating would ever end")
        return share
