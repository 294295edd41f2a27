"""Training: pace, losses, rewards."""

from tools.dashboards.frame import Dashboard, Row
from tools.dashboards.panels import GREEN, RED, YELLOW, Query, ThresholdBands, chart, number
from tools.dashboards.queries import LONG, average, increase, largest, rate, series, total

GAMES = total(increase("five_rollout_games_total"))

BOARD = Dashboard("training", "Five / Training", "How fast a run learns, and what the learner measures.", [
    Row("Pace", [
        number("Version", "Newest version made.", Query(largest(series("five_optimizer_version_versions"))), width=4),
        number("Versions an hour", "A version is 32 gradient steps in the paper.",
               Query(f"3600 * max(deriv({series('five_optimizer_version_versions')}[5m]))"), width=4, decimals=1),
        number("Since the last version", "Time since the newest version was made.",
               Query(f"time() - {largest(series('five_optimizer_version_timestamp_seconds'))}"), "s", width=4),
        number("Hero-steps received", "Timesteps of heroes taken into the buffers a second.",
               Query(total(rate("five_optimizer_received_hero_steps_total", "5m"))), "cps", width=4),
        number("Gradient steps", "A second, of each optimizer.",
               Query(average(rate("five_optimizer_gradient_steps_total", "5m"))), "cps", width=4, decimals=2),
        number("Since the last checkpoint", "What would be lost with the optimizers now.",
               Query(f"time() - {largest(series('five_optimizer_checkpoint_timestamp_seconds'))}"), "s", width=4,
               bands=ThresholdBands([(None, GREEN), (1800, YELLOW), (7200, RED)])),
        chart("Timesteps of heroes", "A second: played by versions, received by optimizers.",
              Query(total(rate("five_rollout_hero_steps_total", "5m")), "played"),
              Query(total(rate("five_optimizer_received_hero_steps_total", "5m")), "received"), unit="cps", least=0),
        chart("Version", "Newest version made, and of the newest checkpoint's optimizer group.",
              Query(largest(series("five_optimizer_version_versions")), "version"), least=0)]),
    Row("Learner", [
        chart("Loss", "Terms of the loss, weighted, and their total; means over a version.",
              Query(average(series("five_optimizer_term_loss"), "term"), "{{term}}")),
        chart("Entropy", "Of the action and the parameters that it uses, in nats. Falling to nothing early means that "
              "exploration has ended.", Query(average(series("five_optimizer_entropy_nats")), "entropy"), least=0),
        chart("Entropy of the action heads", "As a share of each head's maximum. A head that stays at 100 % chooses "
              "randomly; learning.entropy_weights can leave it out of the entropy bonus.",
              Query(f"{average(series('five_optimizer_head_entropy_nats'), 'head')} / "
                    f"{average(series('five_optimizer_head_max_entropy_nats'), 'head')}", "{{head}}"),
              unit="percentunit", least=0),
        chart("Loss of the auxiliary heads", "As a share of chance: at 100 % a head has learned nothing. Win and rank "
              "need learning.outcome_samples_per_game.",
              Query(average(series("five_optimizer_auxiliary_loss_ratio"), "head"), "{{head}}"), unit="percentunit",
              least=0),
        chart("Change of the policy", "Divergence from the policy that acted, and the share of hero-steps whose ratio "
              "is clipped. Growing with staleness and reuse.",
              Query(average(series("five_optimizer_approximate_kl_nats")), "approximate KL"),
              Query(average(series("five_optimizer_clipped_ratio")), "clipped"), least=0),
        chart("Explained variance", "Share of the returns' variance that the value head explains. 1 is perfect; "
              "below 0 it does harm.",
              Query(average(series("five_optimizer_explained_variance_ratio")), "explained"), most=1),
        chart("Gradient norm", "Of the averaged gradient, before its elements are clipped to ±5√v (Berner et al. 2019, "
              "appendix C).", Query(largest(series("five_optimizer_gradient_norm")), "norm"), logarithmic=True),
        chart("Clipped gradient elements", "Share of all elements. A jump: gradients have changed suddenly.",
              Query(largest(series("five_optimizer_gradient_clipped_ratio")), "clipped"), unit="percentunit", least=0),
        chart("Skipped gradient steps", "Steps left out because something was not finite; each is a bug or a learning "
              "rate that is too high.", Query(total(increase("five_optimizer_skipped_steps_total")), "an hour"),
              least=0),
        chart("Standard deviation of rewards", "What rewards are divided by.",
              Query(largest(series("five_optimizer_deviation_reward")), "deviation"), least=0)]),
    Row("Schedules", [
        chart("Learning rate", "0 while it is held: at the start, and after surgery.",
              Query(largest(series("five_optimizer_learning_rate")), "learning rate"), unit="sci", least=0),
        chart("Entropy coefficient and team spirit", "As the schedules have them at the newest version.",
              Query(largest(series("five_optimizer_entropy_coefficient_ratio")), "entropy coefficient"),
              Query(largest(series("five_optimizer_team_spirit_ratio")), "team spirit"), least=0),
        chart("Horizon", "Of the discount, in game time.",
              Query(largest(series("five_optimizer_gae_horizon_seconds")), "horizon"), unit="s", least=0),
        chart("Curriculum", "Shares of new games, and the health of buildings of those that begin in the middle.",
              Query(largest(series("five_optimizer_scripted_games_ratio")), "against scripted bots"),
              Query(largest(series("five_optimizer_middle_games_ratio")), "begin in the middle"),
              Query(largest(series("five_optimizer_building_health_ratio")), "health of buildings"),
              unit="percentunit", least=0),
        chart("Game limit", "Game time at which a new game is cut.",
              Query(largest(series("five_optimizer_game_limit_seconds")), "limit"), unit="s", least=0)]),
    Row("Rewards", [
        chart("Reward of a game, by term", f"What a hero earned in a game, mean over the games of the last {LONG}: "
              "weighted, before it is shared in the team and the other team's is subtracted.",
              Query(f"({total(increase('five_rollout_reward_gained_total'), 'term')} - "
                    f"{total(increase('five_rollout_reward_lost_total'), 'term')}) / ignoring (term) group_left () "
                    f"{GAMES}", "{{term}}"), width=24, height=10)]),
])
