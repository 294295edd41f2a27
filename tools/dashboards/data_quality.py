"""Data quality: staleness and reuse of the samples learned from. Look at this dashboard first."""

from tools.dashboards.frame import Dashboard, Row
from tools.dashboards.panels import CLEAR, GREEN, RED, YELLOW, Query, ThresholdBands, chart, heat, number
from tools.dashboards.queries import average, buckets, largest, mean, quantile, rate, series, total

AGE = "five_optimizer_staleness_versions"
WINDOW = "5m"
YOUNG = total(rate(f"{AGE}_bucket", WINDOW, le="1.0"))

STALENESS = chart(
    "Staleness",
    "Age of the timesteps that are learned from: the newest version minus the one that acted. The band is the "
    "design target, 0 to 1 versions (Berner et al. 2019, section 4.1); the paper's own baseline sits at 1.7, and at 8 "
    "learning is about half as fast (figure 5b). Too old: fewer rollouts, a shorter buffer, faster publishing.",
    Query(mean(AGE, window=WINDOW), "mean"), Query(quantile(0.5, AGE, window=WINDOW), "median"),
    Query(quantile(0.95, AGE, window=WINDOW), "95%"), Query(quantile(0.99, AGE, window=WINDOW), "99%"),
    unit="short", least=0, bands=ThresholdBands([(None, GREEN), (1, CLEAR), (8, RED)], line=True))

REUSE = chart(
    "Sample reuse",
    "Samples consumed over samples received (Berner et al. 2019, equation 13). Target 1, drawn dashed as this run has "
    "it: at 2 learning is about a third as fast (figure 5c). Above: too few rollouts. Below: too many, or optimizers "
    "that are too slow.",
    Query(f"{total(rate('five_optimizer_consumed_samples_total', WINDOW))} / "
          f"{total(rate('five_optimizer_received_samples_total', WINDOW))}", "measured"),
    Query(largest(series("five_optimizer_sample_reuse_target_ratio")), "target", dashed=True),
    least=0, bands=ThresholdBands([(None, CLEAR), (0.9, GREEN), (1.1, CLEAR), (2, RED)]))

BUFFER_AGE = chart(
    "Buffer age",
    "Age of the samples that wait in the buffer, by their newest step. A buffer far older than what is consumed is "
    "larger than the pace of learning needs.",
    Query(average(series("five_optimizer_buffer_age_versions"), "statistic"), "{{statistic}}"), least=0)

DROPS = chart(
    "Samples leaving the buffer, by reason",
    "used: drawn at least once before the ring turned over them. unused: never drawn, work of the rollouts that was "
    "lost. too_old: past buffer.max_age_versions. too_large: larger than the buffer. epoch: "
    "of an epoch of the run that is over.",
    Query(total(rate("five_optimizer_dropped_samples_total", WINDOW), "reason"), "{{reason}}"), unit="cps", least=0,
    stacked=True)

BOARD = Dashboard("data-quality", "Five / Data quality", "Staleness and reuse of training data, and their causes.", [
    Row("Training data", [STALENESS, REUSE]),
    Row("Where it waits", [
        BUFFER_AGE, DROPS,
        heat("Staleness distribution", "Timesteps consumed a second, by age in versions.", Query(buckets(AGE, WINDOW))),
        chart("Buffer", "Samples held, the number without which no batch is drawn, and the room there is; means over "
              "the optimizers. Below the needed line optimizers starve.",
              Query(average(series("five_optimizer_buffer_samples")), "held"),
              Query(average(series("five_optimizer_buffer_needed_samples")), "needed", dashed=True),
              Query(average(series("five_optimizer_buffer_capacity_samples")), "room"), least=0)]),
    Row("How it comes", [
        number("Within target", "Share of the timesteps consumed that are at most one version old.",
               Query(f"{YOUNG} / {total(rate(f'{AGE}_count', WINDOW))}"), "percentunit",
               bands=ThresholdBands([(None, RED), (0.3, YELLOW), (0.6, GREEN)])),
        number("Buffer turns over in", "Samples in the buffer over samples received a second.",
               Query(f"{total(series('five_optimizer_buffer_samples'))} / "
                     f"{total(rate('five_optimizer_received_samples_total', WINDOW))}"), "s"),
        number("Segments waiting", "Segments made that no optimizer has acknowledged. Growing: optimizers are behind.",
               Query(total(series("five_rollout_unsent_segments")))),
        number("Segments refused", "Share of the segments that came too old to be learned from.",
               Query(f"{total(rate('five_optimizer_received_segments_total', WINDOW, verdict='too_old'))} / "
                     f"{total(rate('five_optimizer_received_segments_total', WINDOW))}"), "percentunit",
               bands=ThresholdBands([(None, GREEN), (0.01, YELLOW), (0.05, RED)])),
        number("Samples received", "Samples taken into the buffers a second.",
               Query(total(rate("five_optimizer_received_samples_total", WINDOW))), "cps"),
        number("Samples consumed", "Samples drawn into batches a second.",
               Query(total(rate("five_optimizer_consumed_samples_total", WINDOW))), "cps"),
        chart("Versions in use", "The newest version made, the newest that inference serves and the newest that games "
              "have been played with. The gaps are staleness in the making.",
              Query(largest(series("five_optimizer_version_versions")), "made"),
              Query(f"min({series('five_inference_newest_versions')})", "served, slowest server"),
              Query(largest(series("five_rollout_newest_versions")), "played")),
        chart("Segments", "Made by rollouts, and what optimizers answered. Duplicates come from retries "
              "and are harmless.", Query(total(rate("five_rollout_segments_total", WINDOW)), "made"),
              Query(total(rate("five_optimizer_received_segments_total", WINDOW), "verdict"), "{{verdict}}"),
              unit="cps", least=0),
        chart("Where rollouts spend their time", "Shares of the groups' time. wait: held back by pacing, because "
              "segments were waiting to be taken, or by a pause.",
              Query(f"{total(rate('five_rollout_stage_seconds_total', WINDOW), 'stage')} / ignoring (stage) "
                    f"group_left () {total(rate('five_rollout_stage_seconds_total', WINDOW))}", "{{stage}}"),
              unit="percentunit", stacked=True, least=0, most=1),
        chart("Work lost", "Events an hour. recoveries: recurrent states rebuilt. abandoned: games lost with their "
              "server or opponent. dropped: unused segments. unassigned: self-play without an assigned opponent. "
              "refused: messages of another fencing epoch, while services restart themselves. matches: games "
              "that the evaluator aborted.",
              *(Query(f"3600 * {total(rate(f'five_rollout_{name}_total', WINDOW))}", label) for name, label in (
                  ("recoveries", "recoveries"), ("abandoned_games", "abandoned"), ("dropped_segments", "dropped"),
                  ("unassigned_games", "unassigned"))),
              Query(f"3600 * {total(rate('five_rpc_refused_total', WINDOW), 'reason')}", "refused: {{reason}}"),
              Query(f"3600 * {total(rate('five_evaluator_dropped_games_total', WINDOW))}", "matches"), least=0)])])
