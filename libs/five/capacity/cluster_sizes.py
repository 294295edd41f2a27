"""The four modelled cluster sizes and the cost of a unit of work in each."""

from dataclasses import dataclass

from five.capacity import inputs
from five.run.config import RunConfig
from five.run.load import load

HERO_STATES = 2  # an LSTM has two
FLOAT = 4


@dataclass(frozen=True)
class ForwardCost:
    """Time of a forward pass: ``fixed + per_row * team-steps``, for batches up to ``max_batch``."""

    fixed: float
    per_row: float
    max_batch: int

    def seconds(self, rows: float) -> float:
        """Return the seconds of a batch of ``rows`` team-steps."""
        return self.fixed + self.per_row * rows

    @property
    def most(self) -> float:
        """Team-steps a second with full batches."""
        return self.max_batch / self.seconds(self.max_batch)


@dataclass(frozen=True)
class Cluster:
    """Cluster size. Message sizes and rates follow from the run's configuration and the inputs."""

    name: str
    preset: str
    rollouts: int
    games: int  # games of one rollout
    inference: int
    optimizers: int
    samples_per_second: float  # of one optimizer
    forward: ForwardCost
    team_step_bytes: float  # observation of a request
    segment_step_bytes: float  # observation within a segment
    parameter_bytes: float  # float32
    heroes: int
    config: RunConfig

    @property
    def all_games(self) -> int:
        """Games at once."""
        return self.rollouts * self.games

    @property
    def trained_share(self) -> float:
        """Share of team-steps that are learned from. In games against past versions it is one side's."""
        return 1 - self.config.league.past_opponent_share / 2

    @property
    def learned_steps(self) -> float:
        """Team-steps a second that the optimizers consume at full speed and a sample reuse of 1."""
        return self.optimizers * self.samples_per_second * self.config.learning.lstm_unroll_length

    @property
    def played_steps(self) -> float:
        """Team-steps a second that must be played for `learned_steps`."""
        return self.learned_steps / self.trained_share

    @property
    def segment_steps(self) -> int:
        """Timesteps of a segment."""
        return self.config.learning.lstm_unroll_length * self.config.learning.samples_per_segment

    @property
    def state_bytes(self) -> float:
        """Bytes of a team's recurrent state."""
        model = self.config.model
        return self.heroes * (HERO_STATES * model.lstm + model.key) * FLOAT

    @property
    def segment_bytes(self) -> float:
        """Bytes of a segment: observations, one state a sample, and the actions and rewards of each step."""
        steps = self.segment_steps * (self.segment_step_bytes + self.heroes * 40)
        return steps + self.config.learning.samples_per_segment * self.state_bytes

    @property
    def version_seconds(self) -> float:
        """Seconds from one version to the next."""
        learning = self.config.learning
        return learning.gradient_steps_per_iteration * learning.batch_samples / self.samples_per_second

    @property
    def request_rows(self) -> float:
        """Team-steps in one inference request."""
        return 2 * self.games / self.config.services.rollout.groups

    @property
    def game_hero_steps(self) -> float:
        """Hero-steps a second of the games on one core: behind gRPC, or within the rollout."""
        if self.heroes == 1:
            return inputs.LAPTOP_GAME_HERO_STEPS.value
        remote = self.config.services.rollout.environment == "remote"
        return (inputs.ENV_HERO_STEPS if remote else inputs.GAME_HERO_STEPS).value

    @property
    def rollout_max_rate(self) -> float:
        """Team-steps a second of one rollout on one core that never waits."""
        return self.game_hero_steps / self.heroes

    @property
    def game_cores(self) -> float:
        """Cores that the games take."""
        return self.played_steps * self.heroes / self.game_hero_steps


def cpu_forward() -> ForwardCost:
    """Return the laptop's forward pass, from its two measured batches."""
    one, sixty = 1 / inputs.CPU_BATCH_1.value, 60 / inputs.CPU_BATCH_60.value
    per_row = (sixty - one) / 59
    return ForwardCost(one - per_row, per_row, 60)


def gpu_forward(parameters: float) -> ForwardCost:
    """Return the forward pass of one of the paper's GPUs; its time is proportional to the parameters."""
    sixty = 60 / inputs.GPU_TEAM_STEPS.value * parameters / inputs.PAPER_PARAMETERS.value
    share = inputs.FIXED_SHARE.value
    return ForwardCost(sixty * share, sixty * (1 - share) / 60, 60)


def clusters() -> list[Cluster]:
    """Return the sizes: a laptop, one GPU node, 64 GPUs of each kind, 512 of each kind."""
    laptop, node, rerun = load("laptop-1v1"), load("gpu-node"), load("rerun")
    # An eighth of the games can fill batches of an eighth of the past versions.
    eighth = load("rerun", ["league.active_past_versions=16"])
    paper = inputs.PAPER_PARAMETERS.value

    def gpus(name: str, config: RunConfig, parameters: float, rollouts: int, inference: int,
             optimizers: int) -> Cluster:
        return Cluster(name, config.name, rollouts, config.services.rollout.games, inference, optimizers,
                       inputs.GPU_SAMPLES.value * paper / parameters, gpu_forward(parameters),
                       inputs.TEAM_STEP_5V5.value, inputs.SEGMENT_STEP_5V5.value, FLOAT * parameters, 5, config)

    return [
        Cluster("laptop", laptop.name, 1, laptop.services.rollout.games, 1, 1,
                inputs.LAPTOP_HERO_STEPS.value / laptop.learning.lstm_unroll_length, cpu_forward(),
                inputs.TEAM_STEP_1V1.value, inputs.SEGMENT_STEP_1V1.value, LAPTOP_PARAMETERS * FLOAT, 1, laptop),
        gpus("one node", node, NODE_PARAMETERS, node.services.rollout.processes, 2, 1),
        gpus("64 GPUs", eighth, RERUN_PARAMETERS, 7200 // eighth.services.rollout.games, 64, 64),
        gpus("512 GPUs", rerun, RERUN_PARAMETERS, rerun.services.rollout.processes, 512, 512),
    ]


def version_seconds(config: RunConfig) -> float:
    """Return the seconds from one version of a preset to the next; those of a preset without a cluster on a laptop."""
    learning = config.learning
    steps = learning.gradient_steps_per_iteration * learning.batch_samples * learning.lstm_unroll_length
    laptop = steps * config.game.heroes_per_team / inputs.LAPTOP_HERO_STEPS.value
    return next((c.version_seconds for c in clusters() if c.preset == config.name), laptop)


# Values of a published version (charts/files/presets.yaml has their bytes; a test compares).
LAPTOP_PARAMETERS = 1_224_032 / FLOAT
NODE_PARAMETERS = 52_006_464 / FLOAT
RERUN_PARAMETERS = 626_501_184 / FLOAT
