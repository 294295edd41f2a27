"""Configuration of the evaluator service."""

from pydantic import Field

from five.run.config.section import Section


class EvaluatorConfig(Section):
    """Plays rated games beside training (Berner et al. 2019, appendix J)."""

    address: str = Field("", description="Where the service is reached, host:port. Empty in a local cluster: it picks "
                         "a free port.")
    games: int = Field(4, ge=1, description="Games played at a time.")
    threads: int = Field(1, ge=1, description="Threads that step the games.")
    share_guard: float = Field(
        0.5, ge=0, le=1, description="Share of games that are the guard's while a change is annealed: the newest "
        "version against the last one before the change. Without them the anneal waits at its first gate.")
    cpu_share: float = Field(
        0.0, ge=0, description="Cores that the evaluator's own process takes at most, on average, from the run's first "
        "rating on: leaves the processor to training on a laptop. 0: no bound.")
    replays: str = Field("", description="Folder of recorded matches; empty: replays/ in the run's folder, or in the "
                         "temporary folder where that is read-only.")
    keep_replays: int = Field(200, ge=1, description="Recordings of rated versions that are kept, the newest; one a "
                              "version.")
    draft_line_ups: int = Field(
        2000, ge=0, description="A draft's table (docs/draft.md) of each rated version is made where it has at most so "
        "many line-ups: one takes some milliseconds of a core. 0 makes none. `five draft` makes larger ones.")
    replay_days: float = Field(90.0, gt=0, description="Recordings of matches on request that are older go.")
    replay_mebibytes: float = Field(2048.0, gt=0, description="Recordings of all kinds take at most so much of the "
                                    "folder; the oldest go first.")
    enabled: bool = Field(True, description="Whether versions are rated at all.")
