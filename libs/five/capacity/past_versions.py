"""Cost of past versions: how many are in play, their memory and their forward passes.

Each version needs its own forward pass: with few team-steps of each, passes cost more than their contents. Each
version is held by one server (five.clients.inference_pools) as long as games against it go on.
"""

from dataclasses import dataclass

from five.capacity import inputs
from five.capacity.cluster_sizes import Cluster

MINUTE = 60.0


@dataclass(frozen=True)
class PastPool:
    """Past versions of one cluster at full learning speed. ``slots``: versions that may be sampled at a time
    (league.active_past_versions); 0: each group of games has its own."""

    cluster: Cluster
    slots: int

    @property
    def share(self) -> float:
        """Share of all team-steps: one side of the games against past versions."""
        return self.cluster.config.league.past_opponent_share / 2

    @property
    def steps(self) -> float:
        """Team-steps a second that past versions play."""
        return self.cluster.played_steps * self.share

    @property
    def sessions(self) -> float:
        """Games against past versions at once."""
        return self.cluster.all_games * self.cluster.config.league.past_opponent_share

    @property
    def game_seconds(self) -> float:
        """Length of a game."""
        return inputs.GAME_STEPS.value * 2 * self.cluster.all_games / self.cluster.played_steps

    @property
    def versions(self) -> float:
        """Most versions in play: the sampled ones, and those whose games outlast their turn."""
        groups = self.cluster.rollouts * self.cluster.config.services.rollout.groups
        if not self.slots:
            return min(2.0 * groups, self.sessions)
        turns = 1 + self.game_seconds / (self.cluster.config.league.active_minutes * MINUTE)
        return min(self.slots * turns, self.sessions)

    @property
    def rows(self) -> float:
        """Team-steps of one version in flight: its batch."""
        return self.sessions / self.versions

    @property
    def seconds_a_step(self) -> float:
        """A server's seconds for a team-step of a past version."""
        rows = min(self.rows, float(self.cluster.forward.max_batch))
        return self.cluster.forward.seconds(rows) / rows

    @property
    def servers(self) -> float:
        """Forward passes in servers."""
        return self.steps * self.seconds_a_step

    @property
    def relative_cost(self) -> float:
        """Mean cost of a team-step, relative to one in a full batch of the newest version."""
        return 1 + self.share * max(self.seconds_a_step * self.cluster.forward.most - 1, 0.0)

    @property
    def version_bytes(self) -> float:
        """Bytes of a version in a server."""
        config = self.cluster.config
        half = config.model.precision == "bfloat16" and config.services.inference.device != "cpu"
        return self.cluster.parameter_bytes / (2 if half else 1)

    @property
    def bytes_each(self) -> float:
        """Memory of each inference server for the versions it holds."""
        return self.versions / self.cluster.inference * self.version_bytes

    @property
    def loads(self) -> float:
        """Versions loaded a second by all servers."""
        lasting = self.cluster.config.league.active_minutes * MINUTE if self.slots else self.game_seconds
        return (self.slots or self.versions) / lasting


def past_pool(c: Cluster) -> PastPool:
    """Return the past versions as configured."""
    return PastPool(c, c.config.league.active_past_versions)
