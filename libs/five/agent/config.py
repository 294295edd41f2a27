"""Configuration of the agent: model, learning, league and rating.

Names and defaults follow Berner et al. 2019 (the Rerun column of table 2) where the paper gives them.
"""

import itertools
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, model_validator

from dota.config import MAX_GAME_SECONDS
from rapid.section import MAX_NUMBER, Section

# --------------------------------------------------------------------------------------------------------- the model

SplitHead = Literal["unit.attack", "unit.enemy", "unit.ally", "offset.move", "offset.follow"]
Bot = Literal["random", "scripted-easy", "scripted", "scripted-hard"]
Width = Annotated[int, Field(ge=4, le=65536)]
EmbeddingWidth = Annotated[int, Field(ge=1, le=4096)]
IdSpace = Literal["unit", "animation", "modifier", "ability", "item", "pickup", "build", "area", "action"]


class ModelConfig(Section):
    """Sizes of the network (Berner et al. 2019, appendix H).

    Defaults are the paper's where it gives them. The other widths bring the parameter count near its 158,502,815.
    """

    lstm: Width = Field(4096, description="Units of the single-layer LSTM.")
    lstm_input: Width = Field(4096, description="Width of the fully connected layer before the LSTM.")
    cross_hero_share: float = Field(
        0.25, ge=0, le=1, description="Leading share of that layer's output that is max-pooled over the heroes of a "
        "team.")
    key: Width = Field(
        128, description="Width of unit keys, of target-unit queries and of the primary actions' embeddings.")
    unit_hidden: Width = Field(512, description="First layer of a unit set.")
    unit: Width = Field(512, description="Second layer of a unit set; its first `key` values are the unit's key.")
    set_hidden: Width = Field(128, description="First layer of the sets of modifiers, abilities, items, pickups.")
    set: Width = Field(128, description="Second layer of these sets.")
    unit_embedding: EmbeddingWidth = Field(64, description="Width of a unit type's embedding.")
    animation_embedding: EmbeddingWidth = Field(16, description="Width of an animation's embedding.")
    modifier_embedding: EmbeddingWidth = Field(64, description="Width of a modifier's embedding.")
    ability_embedding: EmbeddingWidth = Field(64, description="Width of an ability's embedding.")
    item_embedding: EmbeddingWidth = Field(64, description="Width of an item's embedding, also as next purchase.")
    pickup_embedding: EmbeddingWidth = Field(16, description="Width of a pickup's embedding.")
    build_embedding: EmbeddingWidth = Field(16, description="Width of a scripted build's embedding.")
    area_embedding: EmbeddingWidth = Field(16, description="Width of an area effect's embedding, on the nearby map.")
    conv_filters: int = Field(32, ge=1, le=4096, description="Filters of each of the two layers over minimap and "
                              "nearby map.")
    auxiliary_hidden: Width = Field(128, description="Hidden layer of the auxiliary heads.")
    split_heads: tuple[SplitHead, ...] = Field(
        (), strict=False, description="Separate heads for a class of actions, besides the paper's: target units by "
        "kind of target, and offsets of move and follow. Surgery splits a head of a running agent.")
    fixed_delay: bool = Field(
        False, description="Every action takes effect at the first frame of its timestep. The delay is neither chosen "
        "nor learned, so that it has no probability and no entropy. Berner et al. 2019 learned it without success.")
    id_rows: dict[IdSpace, Annotated[int, Field(ge=1, le=65535)]] = Field(
        {}, description="Rows of an embedding, by id space, if the default is too small for the ids.")
    input_clip: float = Field(
        5.0, gt=0, description="Every normalised input is clipped to this many standard deviations.")
    precision: Literal["float32", "bfloat16"] = Field(
        "float32", description="bfloat16: layers run under autocast; parameters, state and outputs stay float32. A CPU "
        "computes gradients in bfloat16 only if it has AVX512-BF16 or AMX, and small policies act in float32 on it.")

    @model_validator(mode="after")
    def _keys_fit(self) -> "ModelConfig":
        if self.key > self.unit:
            raise ValueError(f"key {self.key}: it is a slice of a unit's row, so at most unit ({self.unit}) is allowed")
        if len(set(self.split_heads)) != len(self.split_heads):
            raise ValueError(f"split_heads {list(self.split_heads)}: each head may occur once")
        return self

    @property
    def pooled(self) -> int:
        """Number of values of the LSTM's input that are max-pooled over the heroes of a team."""
        return int(self.lstm_input * self.cross_hero_share)


class ComputeConfig(Section):
    """Precision of GPU products, equal in inference and learning, because the probability ratio compares the two."""

    float32_matmul_precision: Literal["float32", "tf32"] = Field(
        "float32", description="Precision of float32 products and convolutions on a GPU: full, or with inputs rounded "
        "to TensorFloat32's 10 bits. PyTorch's default is full for products and tf32 for convolutions.")
    bfloat16_accumulation: Literal["float32", "bfloat16"] = Field(
        "float32", description="Precision of partial sums of a bfloat16 product whose inner dimension a GPU splits. "
        "PyTorch's default is bfloat16.")
    cuda_graphs: bool = Field(
        True, description="Capture GPU work as CUDA graphs, which the host launches as one operation. All slots of an "
        "observation are computed, absent ones too, which takes memory for all slots. false: only present slots, "
        "kernel by kernel, as a CPU always does. services.optimizer.cuda_graphs applies to gradient steps only.")


# ------------------------------------------------------------------------------- learning, the league, the rating


ScheduleUnit = Literal["versions", "hero_steps"]
MAX_POSITION = 10**15


class RampConfig(Section):
    """Linear change of a hyperparameter over ``length`` from ``start`` (0: immediate), both in the schedule's unit."""

    model_config = ConfigDict(populate_by_name=True)

    start: int = Field(ge=0, le=MAX_POSITION, description="Version, or number of hero-steps, at which the change "
                       "begins.")
    length: int = Field(ge=0, le=MAX_POSITION, description="Number of versions, or of hero-steps, that the change "
                        "takes.")
    from_: float = Field(alias="from", description="Value before.")
    to: float = Field(description="Value after.")


class ScheduleConfig(Section):
    """Schedule of a hyperparameter: ``initial`` until the first ramp, then piecewise linear in training progress."""

    initial: float = Field(description="Value before any ramp.")
    ramps: tuple[RampConfig, ...] = Field((), strict=False,
                                          description="Changes in order of their start, without overlap.")
    unit: ScheduleUnit = Field("versions", description="What the ramps count: versions, or hero-steps that the run "
                               "has received. A version has more hero-steps with a larger batch.")

    @property
    def values(self) -> tuple[float, ...]:
        """Values before and after all ramps; the others are between them."""
        return (self.initial, *(value for ramp in self.ramps for value in (ramp.from_, ramp.to)))

    @model_validator(mode="after")
    def _in_order(self) -> "ScheduleConfig":
        for before, after in itertools.pairwise(self.ramps):
            if after.start < before.start + before.length:
                raise ValueError(f"ramps overlap: the ramp at {after.start} {self.unit} starts before the ramp at "
                                 f"{before.start} ends at {before.start + before.length}")
        return self


class SchedulesConfig(Section):
    """Hyperparameters that change during a run. The first four are those of Berner et al. 2019, figure 7, with their
    first values as defaults; the others make curricula, of which the paper has none.
    """

    learning_rate: ScheduleConfig = Field(ScheduleConfig(initial=5e-5), description="Adam's learning rate.")
    entropy_coefficient: ScheduleConfig = Field(ScheduleConfig(initial=0.01), description="Weight of the entropy "
                                                "bonus.")
    team_spirit: ScheduleConfig = Field(ScheduleConfig(initial=0.3), description="Share of a hero's reward that is "
                                        "its team's mean.")
    gae_horizon_seconds: ScheduleConfig = Field(ScheduleConfig(initial=180.0), description="Horizon of the discount, "
                                                "seconds of game time.")
    scripted_fraction: ScheduleConfig = Field(
        ScheduleConfig(initial=0.0), description="Share of new games that are played against a scripted bot "
        "(services.rollout.scripted_bots) instead of a version.")
    scripted_bot: ScheduleConfig = Field(
        ScheduleConfig(initial=-1.0), description="Which of services.rollout.scripted_bots plays the games against "
        "scripted bots, by position from 0 on. Between two positions both bots play, the nearer one more often: at "
        "0.25 the first plays 75 % of the games. Below 0 all bots play equally often.")
    game_seconds: ScheduleConfig = Field(
        ScheduleConfig(initial=MAX_GAME_SECONDS), description="Game time at which a new game is cut, at the end of a "
        "sample. A game that begins in the middle is cut this long after its start. A cut game is not drawn: it has "
        "no outcome, and its returns end with the value head's estimate. From game.max_game_seconds on no game is cut.")
    middle_fraction: ScheduleConfig = Field(
        ScheduleConfig(initial=0.0), description="Share of new games that begin in the middle: from a snapshot of an "
        "earlier game of the same process (services.rollout.snapshots), with a new random state. They do not count "
        "for opponents' qualities and statistics of games. With services.rollout.environment remote it needs "
        "services.rollout.snapshot_bots.")
    building_health: ScheduleConfig = Field(
        ScheduleConfig(initial=1.0), description="Factor on the health of standing buildings in games that begin in "
        "the middle.")

    @model_validator(mode="after")
    def _usable(self) -> "SchedulesConfig":
        bounds = {"learning_rate": (0.0, 1.0), "entropy_coefficient": (0.0, 1.0), "team_spirit": (0.0, 1.0),
                  "gae_horizon_seconds": (1.0, 1e9), "scripted_fraction": (0.0, 1.0), "scripted_bot": (-1.0, 1000.0),
                  "game_seconds": (1.0, float(MAX_GAME_SECONDS)), "middle_fraction": (0.0, 1.0),
                  "building_health": (0.01, 1.0)}
        for name, (low, high) in bounds.items():
            schedule: ScheduleConfig = getattr(self, name)
            for value in schedule.values:
                if not low <= value <= high:
                    raise ValueError(f"{name} {value}: {low:g} to {high:g} is allowed")
        return self


HeadWeight = Annotated[float, Field(ge=0, le=100)]


class EntropyWeightsConfig(Section):
    """Weight of each action head in the entropy bonus. The bonus is the weighted sum times the entropy coefficient.

    The paper does not say which heads count; by default all do, each for the actions that read it.
    """

    action: HeadWeight = Field(1.0, description="Weight of the primary action.")
    delay: HeadWeight = Field(1.0, description="Weight of the frame at which an action takes effect. Rewards hardly "
                              "depend on it, so that the bonus keeps it uniform.")
    offset: HeadWeight = Field(1.0, description="Weight of the offset, x and y together.")
    unit: HeadWeight = Field(1.0, description="Weight of the target unit, teleport targets included.")


class LearnerConfig(Section):
    """PPO, its optimizer and the gradient clip. Defaults: Berner et al. 2019, table 2 and section 3.2."""

    max_seconds: ClassVar[float] = MAX_NUMBER  # of game time

    lstm_unroll_length: int = Field(16, ge=1, description="Timesteps of a sample.")
    samples_per_segment: int = Field(16, ge=1, description="Samples of a segment, which are labelled and sent "
                                     "together.")
    batch_samples: int = Field(120, ge=1, description="Samples per gradient step and optimizer.")
    gradient_steps_per_iteration: int = Field(32, ge=1, description="Gradient steps from a version to the next.")
    gae_lambda: float = Field(0.95, ge=0, le=1, description="GAE's λ.")
    ppo_clip: float = Field(0.2, gt=0, lt=1, description="The probability ratio is clipped to 1 ± this.")
    value_loss_weight: float = Field(1.0, ge=0, description="Weight of half the squared error of the value.")
    entropy_weights: EntropyWeightsConfig = Field(EntropyWeightsConfig(), description="Weights of the action heads in "
                                                  "the entropy bonus.")
    normalise_advantages: bool = Field(True, description="Standardise the advantages of each minibatch, which the "
                                       "paper leaves open.")
    advantage_scope: Literal["rank", "all"] = Field("rank", description="Advantages are standardised over the "
                                                    "optimizer's own minibatch (rank) or over those of all optimizers "
                                                    "(all).")
    reward_scale: Literal["reward", "return"] = Field(
        "reward", description="Divisor of rewards: the running deviation of a step's reward, as in the paper, or of "
        "its discounted sum, which keeps values near 1.")
    win_loss_weight: float = Field(1e-3, ge=0, description="Weight of the win-probability head, the only "
                                   "auxiliary head whose gradient reaches the LSTM.")
    net_worth_rank_loss_weight: float = Field(0.1, ge=0, description="Weight of the net-worth-rank head.")
    building_loss_weight: float = Field(0.1, ge=0, description="Weight of the building-events head.")
    outcome_samples_per_game: int = Field(
        0, ge=0, le=1000, description="Samples of a team in a game, its first one and a random choice, that are kept "
        "until the game ends and labelled by its outcome, for the win-probability and net-worth-rank heads. At most "
        "one is sent with a segment. 0, as in the paper: all labels but those of a game's last segment are the heads' "
        "own predictions.")
    building_horizon_seconds: float = Field(120.0, gt=0, description="Horizon of the building events' discount.")
    adam_beta1: float = Field(0.9, ge=0, lt=1, description="Adam's β1.")
    adam_beta2: float = Field(0.999, ge=0, lt=1, description="Adam's β2.")
    adam_epsilon: float = Field(1e-8, gt=0, description="Adam's ε; not in the paper.")
    gradient_clip: float = Field(5.0, ge=0, description="A gradient element is clipped to ± this times the root of "
                                 "its running second moment; 0 disables the clip.")
    gradient_clip_decay: float = Field(0.999, gt=0, lt=1, description="Decay of that second moment; not in the paper.")
    gradient_clip_warmup_steps: int = Field(100, ge=1, description="Gradient steps before the clip begins.")
    initial_hold_steps: int = Field(32, ge=0, description="Gradient steps of a new run at learning rate 0, while the "
                                    "statistics of observations settle.")
    fused_adam: bool = Field(True, description="Use the single-kernel Adam.")


class BufferConfig(Section):
    """Sample buffer of an optimizer, and the pace of its consumption."""

    capacity_samples: int = Field(4096, ge=1, description="Maximum samples; the oldest leave first.")
    capacity_bytes: int = Field(2 << 30, ge=1, description="Maximum bytes, as stored.")
    minimum_samples: int = Field(120, ge=1, description="Minimum samples in the buffer before a batch is sampled.")
    max_age_versions: int = Field(16, ge=1, description="A sample whose newest step is older is dropped. It is a "
                                  "safety net, not the pace.")
    sampling: Literal["uniform", "least_used", "oldest"] = Field(
        "uniform", description="uniform: all samples have equal probability, so at a reuse of 1 about 37 % leave "
        "unused. least_used: samples with the fewest uses come first. oldest: among these the oldest come first, which "
        "makes a queue of minimum_samples; Berner et al. 2019 set staleness this way in figure 5b.")
    sample_reuse: float = Field(1.0, gt=0, description="Maximum average number of uses of a sample.")
    reuse_window_batches: float = Field(8.0, ge=1, description="Batches by which an optimizer that fell behind may "
                                        "catch up; uses of samples beyond that are lost.")
    admission_batches: float = Field(4.0, ge=1, description="Intake stops at this many batches of unconsumed samples; "
                                     "less than reuse_window_batches.")

    @model_validator(mode="after")
    def _consistent(self) -> "BufferConfig":
        if self.minimum_samples > self.capacity_samples:
            raise ValueError(f"minimum_samples {self.minimum_samples}: at most capacity_samples "
                             f"({self.capacity_samples}) is allowed")
        if self.admission_batches >= self.reuse_window_batches:
            raise ValueError(f"admission_batches {self.admission_batches}: less than reuse_window_batches "
                             f"({self.reuse_window_batches}) is required, otherwise intake never stops")
        return self


class LeagueConfig(Section):
    """Selection of opponents (Berner et al. 2019, appendix N)."""

    past_opponent_share: float = Field(0.2, ge=0, le=1, description="Share of games against a past version.")
    quality_learning_rate: float = Field(0.01, gt=0, description="η: a win lowers the beaten opponent's quality by η "
                                         "divided by its probability and the size of the pool.")
    add_every_versions: int = Field(10, ge=1, description="Versions between two additions to the pool.")
    active_past_versions: int = Field(
        0, ge=0, description="Number of past versions in play at a time. Each is replaced by sampling after "
        "active_minutes, so inference holds few versions and fills their batches. In the long run each version is met "
        "as often as with sampling per game, as in the paper (0).")
    active_minutes: float = Field(20.0, gt=0, description="Minutes that a version stays in play.")
    max_quality_drop: float = Field(1.0, gt=0, description="Maximum drop of a quality per win, because the rule is "
                                    "unbounded for rarely sampled opponents; also per draw that several games play, "
                                    "and with active_past_versions per turn of active_minutes.")


class RatingConfig(Section):
    """TrueSkill of versions against frozen references (Berner et al. 2019, appendix J)."""

    sigma: float = Field(25 / 3, gt=0, description="σ of TrueSkill. The prior of a fitted rating is four times as "
                         "wide.")
    beta: float = Field(25 / 6, gt=0, description="β: the skill gap of about 76% wins.")
    tau: float = Field(0.0, ge=0, le=0, description="τ: growth of σ between games. Only 0 is allowed, because a "
                       "version does not change.")
    draw_probability: float = Field(0.02, ge=0, lt=1, description="Draw probability between equal players until a game "
                                    "is drawn; then it is estimated from the games.")
    max_reference_distance: float = Field(10.0, gt=0, description="Maximum distance of references from the rating "
                                          "that they are played at.")
    games_per_rating: int = Field(750, ge=2, description="Games after which a version's rating is final.")
    games_per_round: int = Field(50, ge=2, description="Games assigned together. After the last of them the next "
                                 "round is assigned, against the references near the rating then.")
    first_rating_games: int = Field(50, ge=2, description="Games of a run's first rating, against random play; few, "
                                    "because a new run waits for it.")
    anchors: tuple[Bot, ...] = Field(("random", "scripted-easy", "scripted", "scripted-hard"), strict=False,
                                     description="Bots that are rated against each other once, after the first "
                                     "version.")
    games_per_anchor_pair: int = Field(40, ge=2, description="Games between every two anchors.")
    required_references: tuple[Bot, ...] = Field((), strict=False, description="Anchors that every version plays at "
                                                 "any distance, for a comparable win rate.")
    reference_spacing: float = Field(4.0, gt=0, description="A rated version at least this far from every reference "
                                     "becomes one.")

    @model_validator(mode="after")
    def _rated_against_somebody(self) -> "RatingConfig":
        if "random" not in self.anchors or len(set(self.anchors)) != len(self.anchors):
            raise ValueError(f"rating.anchors {list(self.anchors)}: random is required, and each bot may occur once")
        if unknown := set(self.required_references) - set(self.anchors):
            raise ValueError(f"rating.required_references {', '.join(sorted(unknown))}: only rating.anchors are "
                             f"allowed")
        return self
