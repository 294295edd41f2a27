"""League and rating: the agent's strength and its opponents."""

from tools.dashboards.frame import Dashboard, Row
from tools.dashboards.panels import Query, against, chart, number
from tools.dashboards.queries import increase, largest, series, total

MU, SIGMA = series("five_evaluator_trueskill_rating"), series("five_evaluator_trueskill_sigma_rating")
PAST = total(increase("five_rollout_games_total", opponent="past"))
DECIDED = total(increase("five_rollout_games_total", opponent="past", outcome="~won|lost|drawn"))
VARIANT_STATISTICS = total(increase("five_rollout_variant_hero_statistics_total", statistic="~last_hits|deaths"),
                           "variant", "statistic")

BOARD = Dashboard("league", "Five / League and rating",
                  "TrueSkill by version, win rates, and the pool of past versions.", [
    Row("Rating", [
        number("TrueSkill", "Of the version rated last; random play is 0.", Query(largest(MU)), width=3, decimals=1),
        number("Uncertainty", "Standard deviation of that rating.", Query(largest(SIGMA)), width=3, decimals=1),
        number("Rated version", "Version that was rated last.",
               Query(largest(series("five_evaluator_rated_versions"))), width=3),
        number("Behind", "Versions made since the one that was rated last.",
               Query(f"{largest(series('five_optimizer_version_versions'))} - "
                     f"{largest(series('five_evaluator_rated_versions'))}"), width=3),
        number("References", "Players with a frozen rating.",
               Query(largest(series("five_evaluator_reference_versions")))),
        number("Past versions", "In the pool of opponents.", Query(largest(series("five_opponents_pool_versions")))),
        number("Share of draws", "Share of draws between equals, as estimated from the games.",
               Query(largest(series("five_evaluator_draw_ratio"))), unit="percentunit"),
        chart("TrueSkill", "Mean and uncertainty (one standard deviation) of the version rated last. The paper's four "
              "baseline runs differ by about 2 (figure 20).", Query(largest(MU), "rating"),
              Query(f"max({MU} + {SIGMA})", "+ σ", dashed=True), Query(f"max({MU} - {SIGMA})", "- σ", dashed=True)),
        against("TrueSkill by version", "The same over versions instead of time: how the paper compares runs.",
                Query(largest(series("five_evaluator_rated_versions")), "version"), Query(largest(MU), "rating")),
        chart("Win rate against bots", "Share of its games that the version rated last won against each bot that it "
              "played, a draw being half, with the 95 % interval.",
              Query(largest(series("five_evaluator_win_ratio"), "opponent"), "{{opponent}}"),
              Query(largest(series("five_evaluator_win_bound_ratio"), "opponent", "end"), "{{opponent}} {{end}}",
                    dashed=True), unit="percentunit", least=0, most=1),
        chart("Rating games", "The evaluator's games an hour, by outcome for the version under test.",
              Query(total(increase("five_evaluator_played_games_total"), "opponent", "outcome"),
                    "{{opponent}} {{outcome}}"), least=0, stacked=True),
        chart("Games without a result", "In the last hour: lost and played again, and aborted, which their rating does "
              "without.", Query(total(increase("five_evaluator_dropped_games_total"), "reason"), "{{reason}}"),
              Query(total(increase("five_evaluator_aborted_games_total")), "aborted"), least=0)]),
    Row("How the rated version plays", [
        chart("Last hits, denies, kills, deaths, assists", "Of a hero of the version rated last, means of its games: "
              "nothing is randomised in them, unlike in training.",
              Query(largest(series("five_evaluator_hero_statistic",
                                   statistic="~last_hits|denies|kills|deaths|assists"), "statistic"), "{{statistic}}"),
              least=0),
        chart("Length of its games", "Mean, in game time.",
              Query(largest(series("five_evaluator_mean_game_seconds")), "mean"), unit="s", least=0)]),
    Row("League", [
        chart("Win rate against past versions", "Of training games in the last hour, a draw being half. Near one half "
              "the newest version is not better than its ancestors.",
              Query(f"({total(increase('five_rollout_games_total', opponent='past', outcome='won'))} + 0.5 * "
                    f"{total(increase('five_rollout_games_total', opponent='past', outcome='drawn'))}) / {DECIDED}",
                    "win rate"), unit="percentunit", least=0, most=1),
        chart("Games by opponent", "Share of the games that were given each kind of opponent; a fifth against past "
              "versions in the paper (appendix N).",
              Query(f"{total(increase('five_opponents_assigned_games_total'), 'opponent')} / ignoring (opponent) "
                    f"group_left () {total(increase('five_opponents_assigned_games_total'))}", "{{opponent}}"),
              unit="percentunit", least=0, most=1, stacked=True),
        chart("Pool", "Past versions in the pool, and how many of them are really played: the exponential of the "
              "draw's entropy.", Query(largest(series("five_opponents_pool_versions")), "in the pool"),
              Query(largest(series("five_opponents_pool_effective_versions")), "effective"), least=0),
        chart("Newest in the pool", "The pool's newest version, beside the newest of all. Archived versions join it.",
              Query(largest(series("five_optimizer_version_versions")), "newest"),
              Query(largest(series("five_opponents_pool_newest_versions")), "newest in the pool"), least=0),
        chart("Results against past versions", "Counted by the league in the last hour, by outcome for the training "
              "agent.", Query(total(increase("five_opponents_reported_games_total"), "outcome"), "{{outcome}}"),
              least=0, stacked=True)]),
    Row("A change that is annealed into games", [
        chart("Games with the change", "Share of games that ended under the new rule, beside their part in what is "
              "learned from. The anneal holds at its gates until its guard passes it.",
              Query(f"{total(increase('five_rollout_variant_games_total', variant='new'))} / "
                    f"{total(increase('five_rollout_variant_games_total'))}", "of games"),
              Query(f"{total(increase('five_optimizer_variant_received_hero_steps_total', variant='new'))} / "
                    f"{total(increase('five_optimizer_variant_received_hero_steps_total'))}", "of hero-steps"),
              Query(largest(series("five_controller_anneal_ratio")), "as the anneal has it", dashed=True),
              unit="percentunit", least=0, most=1),
        chart("State of the anneal", "1 for the state that it is in, and its try: a failed one is reverted and tried "
              "again, slower, where its policy says so.",
              Query(largest(series("five_controller_anneal_state"), "state"), "{{state}}"),
              Query(largest(series("five_controller_anneal_attempt_info")), "try"), least=0),
        chart("Guard's games", "The newest version against the last one before the change, under each rule, by outcome "
              "for the newest: games in the last hour.",
              Query(total(increase("five_evaluator_guard_games_total"), "rule", "outcome"), "{{rule}} {{outcome}}"),
              least=0, stacked=True),
        chart("Guard's pairs", "Games of the present attempt whose pair, the same seed with the sides swapped, is "
              "complete.", Query(largest(series("five_evaluator_guard_paired_games")), "games"), least=0),
        chart("Length of games by variant", "Mean, in game time.",
              Query(f"{total(increase('five_rollout_variant_game_seconds_total'), 'variant')} / "
                    f"{total(increase('five_rollout_variant_games_total'), 'variant')}", "{{variant}}"),
              unit="s", least=0),
        chart("Last hits and deaths by variant", "Of a hero that learns, means of the games of each variant.",
              Query(f"{VARIANT_STATISTICS} / on (variant) group_left () "
                    f"{total(increase('five_rollout_variant_games_total'), 'variant')}",
                    "{{variant}} {{statistic}}"), least=0)]),
])
