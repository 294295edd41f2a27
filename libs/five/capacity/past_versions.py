"""The pool of past versions: how many are in play, what they weigh, and what their forward passes cost.

Each version is a forward pass of its own: with few team-steps of each, passes cost more than what is in them. And each
is kept by one server (five.clients.inference_pools), as long as games against it go on.
"""

from dataclasses import dataclass

from five.capacity import inputs
from five.capacity.cluster_sizes import Cluster

MINUTE = 60.0


@dataclass(frozen=True)
class PastPool:
    """Of one cluster, at the pace at which its optimizers learn at full speed. ``places``: versions that may be drawn
    at a time (league.past_in_play); 0: each group of games has one of its own."""

    cluster: Cluster
    places: int

    @property
    def share(self) -> float:
        """Of all team-steps: one side of the games against the past."""
        return self.cluster.config.league.past_opponent_share / 2

    @property
    def steps(self) -> float:
        """Team-steps a second that past versions play."""
        return self.cluster.played_steps * self.share

    @property
    def sessions(self) -> float:
        """Games against the past at once."""
        return self.cluster.all_games * self.cluster.config.league.past_opponent_share

    @property
    def game_seconds(self) -> float:
        """A game's length."""
        return inputs.GAME_STEPS.value * 2 * self.cluster.all_games / self.cluster.played_steps

    @property
    def versions(self) -> float:
        """In play at most: those that are drawn, and those whose games go on after their turn."""
        groups = self.cluster.rollouts * self.cluster.config.services.rollout.groups
        if not self.places:
            return min(2.0 * groups, self.sessions)
        turns = 1 + self.game_seconds / (self.cluster.config.league.in_play_minutes * MINUTE)
        return min(self.places * turns, self.sessions)

    @property
    def rows(self) -> float:
        """Team-steps of one version under way: its batch."""
        return self.sessions / self.versions

    @property
    def seconds_a_step(self) -> float:
        """Of a server, for a team-step of a past version."""
        rows = min(self.rows, float(self.cluster.forward.max_batch))
        return self.cluster.forward.seconds(rows) / rows

    @property
    def servers(self) -> float:
        """Servers' worth of forward passes."""
        return self.steps * self.seconds_a_step

    @property
    def dearer(self) -> float:
        """A mean team-step's cost over that of one in a full pass of the newest version."""
        return 1 + self.share * max(self.seconds_a_step * self.cluster.forward.most - 1, 0.0)

    @property
    def version_bytes(self) -> float:
        """As a server keeps it."""
        half = self.cluster.config.model.precision == "bfloat16"
        return self.cluster.parameter_bytes / (2 if half else 1)

    @property
    def bytes_each(self) -> float:
        """Memory of each inference server for the versions that it owns."""
        return self.versions / self.cluster.inference * self.version_bytes

    @property
    def loads(self) -> float:
        """Versions loaded a second, of all servers."""
        lasting = self.cluster.config.league.in_play_minutes * MINUTE if self.places else self.game_seconds
        return (self.places or self.versions) / lasting


def past_pool(c: Cluster) -> PastPool:
    """As the cluster's configuration has it."""
    return PastPool(c, c.config.league.past_in_play)
