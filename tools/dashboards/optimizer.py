"""Optimizer: where its time goes, publishing, checkpoints."""

from tools.dashboards.frame import Dashboard, Row
from tools.dashboards.panels import GREEN, RED, YELLOW, Query, ThresholdBands, chart, heat, number
from tools.dashboards.queries import average, buckets, increase, largest, mean, quantile, rate, series, total

STEP, PUBLISH = "five_optimizer_step_seconds", "five_optimizer_publish_seconds"
SENDING, RECEIVED = "five_optimizer_sending_instances", "five_optimizer_received_segments_total"
STALL, CHECKPOINT = "five_optimizer_stall_seconds", "five_optimizer_checkpoint_seconds"

BOARD = Dashboard("optimizer", "Five / Optimizer", "Gradient steps, waiting, publishing and checkpoints.", [
    Row("Time", [
        number("Optimizers", "In the group that averages its gradients.",
               Query(largest(series("five_optimizer_group_instances")))),
        number("Gradient step", "Mean time.", Query(mean(STEP, window="5m")), "s"),
        number("Computing", "Mean share of the optimizers' time in gradient steps.",
               Query(average(rate(f"{STEP}_sum", "5m"))), "percentunit"),
        number("Waiting", "Mean share of the optimizers' time without a batch. High: too few rollouts, which is cheap "
               "to mend, with optimizers being what costs most.",
               Query(average(rate("five_optimizer_waited_seconds_total", "5m"))), "percentunit"),
        number("Publish, 95%", "From a version's last gradient step until it can be fetched.",
               Query(quantile(0.95, PUBLISH, window="1h")), "s"),
        number("Checkpoints", "Written in the last hour.",
               Query(total(increase("five_optimizer_written_checkpoints_total")))),
        chart("Gradient step", "Time of one step.", Query(mean(STEP), "mean"),
              *(Query(quantile(q, STEP), f"{q:.0%}") for q in (0.5, 0.95, 0.99)), unit="s", least=0),
        chart("Computing and waiting", "Shares of each optimizer's time. A single slow one holds up the whole group.",
              Query(total(rate(f"{STEP}_sum", "5m"), "instance"), "{{instance}} computes"),
              Query(total(rate("five_optimizer_waited_seconds_total", "5m"), "instance"), "{{instance}} waits"),
              unit="percentunit", least=0, most=1),
        heat("Step time", "Gradient steps, by their time.", Query(buckets(STEP)), "s"),
        chart("Floating point operations", "A second, by optimizer: what its hardware really does in learning.",
              Query(total(rate("five_optimizer_flop_total", "5m"), "instance"), "{{instance}}"), unit="flops",
              least=0)]),
    Row("Experience", [
        chart("Samples received", "A second, by optimizer. Unequal: rollouts are not spread.",
              Query(total(rate("five_optimizer_received_samples_total"), "instance"), "{{instance}}"), unit="cps",
              least=0, stacked=True),
        chart("Buffer memory", "Bytes of the samples at rest, by optimizer.",
              Query(total(series("five_optimizer_buffer_bytes"), "instance"), "{{instance}}"), unit="bytes", least=0)]),
    Row("Senders", [
        number("Optimizers with senders", "Share of the optimizers to which a rollout has an open stream of segments. "
               "A step needs a batch of every optimizer, so below 100 % nothing is learned.",
               Query(average(f"{series(SENDING)} > bool 0")), "percentunit",
               width=6, bands=ThresholdBands([(None, RED), (1, GREEN)])),
        number("Fewest senders", "Rollouts with an open stream to the optimizer that has the fewest.",
               Query(f"min({series(SENDING)})"), width=6, bands=ThresholdBands([(None, RED), (1, GREEN)])),
        number("Segments unsent", "Made by rollouts, acknowledged by no optimizer. Growing: optimizers are behind "
               "or away.",
               Query(total(series("five_rollout_unsent_segments"))), width=6),
        number("Segments dropped", "By rollouts in the last hour: too large, of another epoch, or unacknowledged.",
               Query(total(increase("five_rollout_dropped_segments_total"))),
               width=6, bands=ThresholdBands([(None, GREEN), (1, YELLOW)])),
        chart("Senders", "Rollouts with an open stream of segments, by optimizer. Unequal by more than one: rollouts "
              "start, end or cannot reach it.", Query(total(series(SENDING), "instance"), "{{instance}}"), least=0),
        chart("Segments accepted", "A second, by optimizer. A line at 0 is an optimizer without experience.",
              Query(total(rate(RECEIVED, verdict="accepted"), "instance"), "{{instance}}"), unit="cps", least=0),
        chart("Segments unsent, by rollout", "The ten longest queues of segments that wait for an optimizer.",
              Query(f"topk(10, {total(series('five_rollout_unsent_segments'), 'instance')})", "{{instance}}"), least=0),
        chart("Segments not accepted", "An hour. By optimizer: duplicates after a reconnection are harmless, too_old "
              "and stale_epoch are lost work. By reason: dropped by rollouts.",
              Query(f"3600 * {total(rate(RECEIVED, verdict='~[^a].*'), 'instance', 'verdict')}",
                    "{{instance}} {{verdict}}"),
              Query(f"3600 * {total(rate('five_rollout_dropped_segments_total'), 'reason')}", "dropped: {{reason}}"),
              least=0),
        chart("Streams of segments that failed", "In the last hour, by optimizer and status. Some at each restart or "
              "end of a rollout are normal; many are a network that cuts connections.",
              Query(total(increase("five_rpc_answered_calls_total", method="~.*/Push", code="~[^O].*"), "instance",
                          "code"), "{{instance}} {{code}}"), least=0)]),
    Row("Versions", [
        chart("Publish", "Time to publish a version, and how long learning stood still for it: it waits only for a "
              "copy of the parameters, unless the version before is not out yet. A checkpoint comes after its version, "
              "and nothing waits for it.",
              Query(mean(PUBLISH, window="1h"), "mean"), Query(quantile(0.95, PUBLISH, window="1h"), "95%"),
              Query(mean(STALL, window="1h"), "stall, mean"), Query(quantile(0.95, STALL, window="1h"), "stall, 95%"),
              Query(mean(CHECKPOINT, window="1h"), "checkpoint, mean"), unit="s", least=0),
        chart("Checkpoints and skipped steps", "In the last hour.",
              Query(total(increase("five_optimizer_written_checkpoints_total")), "checkpoints"),
              Query(total(increase("five_optimizer_skipped_steps_total")), "skipped steps"), least=0),
        chart("Writing checkpoints", "Rate at which the newest was written to the blob store.",
              Query(largest(series("five_optimizer_checkpoint_write_rate"), "instance"), "{{instance}}"), unit="Bps",
              least=0),
        chart("Draining", "Time that it may take by that rate; the pod's grace period has to be longer.",
              Query(largest(series("five_optimizer_drain_seconds"), "instance"), "{{instance}}"), unit="s",
              least=0)]),
])
