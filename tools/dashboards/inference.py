"""Inference: queues, batches, versions."""

from tools.dashboards.frame import Dashboard, Row
from tools.dashboards.panels import GREEN, RED, YELLOW, Query, ThresholdBands, chart, heat, number
from tools.dashboards.queries import average, buckets, increase, largest, mean, quantile, rate, series, total

QUEUE, FORWARD, BATCH = "five_inference_queue_seconds", "five_inference_forward_seconds", "five_inference_batch_steps"
BUSY = rate("five_inference_forward_seconds_sum")

BOARD = Dashboard("inference", "Five / Inference",
                  "Queue time, batch size, load and versions of the inference servers.", [
    Row("Load", [
        number("Queue time, 95%", "Time that requests wait for their batch. Long queues slow every game down.",
               Query(quantile(0.95, QUEUE)), "s",
               bands=ThresholdBands([(None, GREEN), (0.05, YELLOW), (0.25, RED)])),
        number("Batch", "Mean team-steps of a batch.", Query(mean(BATCH)), decimals=1),
        number("Team-steps", "Evaluated a second.", Query(total(rate("five_inference_team_steps_total"))), "cps"),
        number("Busy", "Mean share of the servers' time in forward passes.", Query(average(BUSY)), "percentunit",
               bands=ThresholdBands([(None, GREEN), (0.8, YELLOW), (0.95, RED)])),
        number("Servers", "Inference servers that send a heartbeat.",
               Query(largest(series("five_controller_live_instances", component="inference")))),
        number("Sessions", "Recurrent states that are kept.", Query(total(series("five_inference_open_sessions")))),
        chart("Queue time", "Time that requests wait for their batch. More servers shorten it.",
              Query(mean(QUEUE), "mean"), *(Query(quantile(q, QUEUE), f"{q:.0%}") for q in (0.5, 0.95, 0.99)),
              unit="s", least=0),
        chart("Forward pass", "Time of the forward passes of one batch.", Query(mean(FORWARD), "mean"),
              *(Query(quantile(q, FORWARD), f"{q:.0%}") for q in (0.5, 0.95, 0.99)), unit="s", least=0),
        heat("Batch size", "Batches, by their team-steps. Small batches waste a GPU.", Query(buckets(BATCH))),
        chart("Busy", "Share of each server's time in forward passes.", Query(total(BUSY, "instance"), "{{instance}}"),
              unit="percentunit", least=0, most=1),
        chart("Team-steps", "Evaluated a second, by server. Unequal: streams are not spread.",
              Query(total(rate("five_inference_team_steps_total"), "instance"), "{{instance}}"), unit="cps", least=0,
              stacked=True),
        chart("Requests not evaluated", "A second, by reason. unknown_sessions: states are rebuilt by the rollout.",
              Query(total(rate("five_inference_dropped_requests_total"), "reason"), "{{reason}}"), unit="cps",
              least=0)]),
    Row("Versions and sessions", [
        chart("Version served", "By server; one that lags makes its games stale.",
              Query(largest(series("five_inference_newest_versions"), "instance"), "{{instance}}")),
        chart("Time to swap", "From seeing a newer version to serving it.",
              Query(mean("five_inference_swap_seconds", window="1h"), "mean"),
              Query(quantile(0.95, "five_inference_swap_seconds", window="1h"), "95%"), unit="s", least=0),
        chart("Versions in memory", "The newest, and past ones that opponents play.",
              Query(largest(series("five_inference_resident_versions"), "instance"), "{{instance}}"), least=0),
        chart("Memory of past versions", "Beside the newest; services.inference.past_mebibytes bounds it.",
              Query(largest(series("five_inference_past_bytes"), "instance"), "{{instance}}"), unit="bytes", least=0),
        chart("Loads", "In the last hour: newer versions that took over, and past ones loaded for a game's opponent. "
              "Many of the latter: past versions do not fit into memory (services.inference.past_mebibytes).",
              Query(total(increase("five_inference_swaps_total")), "newer"),
              Query(total(increase("five_inference_past_loads_total")), "past"), least=0),
        chart("Sessions", "Kept, and forgotten because their lease ran out (an hour).",
              Query(total(series("five_inference_open_sessions")), "kept"),
              Query(f"3600 * {total(rate('five_inference_expired_sessions_total'))}", "expired an hour"), least=0)]),
])
