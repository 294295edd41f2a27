"""System: the run's state, its processes, Redis, calls between services, autoscaling."""

from tools.dashboards.frame import EVERYWHERE, Dashboard, Row
from tools.dashboards.panels import GREEN, RED, YELLOW, Query, ThresholdBands, chart, number
from tools.dashboards.queries import increase, largest, rate, series, total

USED, LIMIT = "five_controller_redis_used_bytes", "five_controller_redis_limit_bytes"

def named(expression: str) -> str:
    """Return processes' metrics with the id of each one's service instance."""
    return f"{expression} * on (job, instance) group_left (id) {series(EVERYWHERE)}"


BOARD = Dashboard("system", "Five / System",
                  "State of the run, processes, Redis, calls between services, autoscaling.", [
    Row("Run", [
        number("Services", "Instances that send a heartbeat.",
               Query(total(f"max by (component) ({series('five_controller_live_instances')})"))),
        number("Redis", "Redis roles (state, params) that answer, of two.",
               Query(total(largest(series("five_controller_redis_up_state"), "role"))),
               bands=ThresholdBands([(None, RED), (2, GREEN)])),
        number("Restarts", "Processes started again in the last hour, in place.",
               Query(total(f"changes({series('process_start_time_seconds')}[1h])")),
               bands=ThresholdBands([(None, GREEN), (1, YELLOW), (5, RED)])),
        number("Errors", "Error records logged in the last hour.",
               Query(total(increase("five_process_log_records_total", level="error"))), decimals=0,
               bands=ThresholdBands([(None, GREEN), (1, YELLOW), (10, RED)])),
        number("Cores in use", "CPU time of all services a second.", Query(total(rate("process_cpu_seconds_total"))),
               decimals=1),
        number("Memory", "Resident memory of all services.", Query(total(series("process_resident_memory_bytes"))),
               "bytes"),
        chart("State of the run", "1 for the status that the run is in.",
              Query(f"{largest(series('five_controller_run_state'), 'status')} == 1", "{{status}}"), least=0, most=1),
        chart("Live instances", "That send a heartbeat to Redis, by component.",
              Query(f"{largest(series('five_controller_live_instances'), 'component')}", "{{component}}"), least=0)]),
    Row("One writer, one record", [
        chart("Epoch and record", "Surgeries and reverts begin another epoch, every change of the record a revision.",
              Query(largest(series("five_controller_run_epoch_info")), "epoch"),
              Query(largest(series("five_controller_run_record_revision_info")), "revision"), least=0),
        chart("Configuration drift", "Keys in which the configuration file lags behind the run's record, which holds.",
              Query(largest(series("five_controller_config_drift_keys")), "keys"), least=0),
        chart("Not at rest", "Services that the present pause waits for.",
              Query(largest(series("five_controller_not_idle_instances")), "services"), least=0),
        chart("Refused writes", "Writes refused inside Redis, an hour, by kind of service and reason: a group that was "
              "replaced, or left in an older epoch.",
              Query(total(increase("five_state_refused_writes_total"), "kind", "reason"), "{{kind}} {{reason}}"),
              least=0)]),
    Row("Processes", [
        chart("CPU", "Cores in use, by process.",
              Query(named(rate("process_cpu_seconds_total")), "{{kind}} {{id}}"), least=0, stacked=True),
        chart("Memory", "Resident, by process. Growing without end is a leak.",
              Query(named(series("process_resident_memory_bytes")), "{{kind}} {{id}}"), unit="bytes", least=0),
        chart("File descriptors", "Open, as a share of what a process may open.",
              Query(f"{total(series('process_open_fds'), 'job', 'instance', 'kind')} / "
                    f"{total(series('process_max_fds'), 'job', 'instance', 'kind')}", "{{kind}} {{instance}}"),
              unit="percentunit", least=0),
        chart("Uptime", "Time since each process started.",
              Query(f"time() - {named(series('process_start_time_seconds'))}", "{{kind}} {{id}}"), unit="s", least=0),
        chart("Warnings and errors", "Records logged, an hour.",
              Query(total(increase("five_process_log_records_total"), "kind", "level"), "{{kind}} {{level}}"), least=0),
        chart("Scrapes", "1 where Prometheus reaches a process that it has reached within the last hour, otherwise 0.",
              Query(f"last_over_time({series(EVERYWHERE)}[1h]) * on (job, instance) group_left () up",
                    "{{kind}} {{id}}"), least=0, most=1)]),
    Row("Redis", [
        chart("Memory", "Used, and the limit where there is one. A params store at its limit refuses versions.",
              Query(largest(series(USED), "role"), "{{role}}"),
              Query(f"{largest(series(LIMIT), 'role')} > 0", "{{role}} limit"), unit="bytes", least=0),
        chart("Answer time", "Of one exchange, as the controller sees it.",
              Query(largest(series("five_controller_redis_answer_seconds"), "role"), "{{role}}"), unit="s", least=0),
        chart("Failed tries", "Exchanges that failed and were repeated or given up, an hour, by kind of service.",
              Query(total(increase("five_redis_failed_tries_total"), "kind", "role"), "{{kind}} {{role}}"), least=0),
        chart("Append-only file", "1 where the Redis of that role keeps one and its last write went well. The run's "
              "state must; parameters need not.",
              Query(largest(series("five_controller_redis_append_only_state"), "role"), "{{role}}"), least=0, most=1)]),
    Row("Calls between services", [
        chart("Calls answered", "A second, by method. A stream counts once, at its end.",
              Query(total(rate("five_rpc_answered_calls_total"), "method"), "{{method}}"), unit="cps", least=0),
        chart("Calls that failed", "In the last hour, by method and code.",
              Query(total(increase("five_rpc_answered_calls_total", code="~[^O].*"), "method", "code"),
                    "{{method}} {{code}}"), least=0)]),
    Row("Live games", [
        chart("Viewers", "Who watches live games, and the games that are kept for them.",
              Query(largest(series("five_controller_live_viewers_instances")), "viewers"),
              Query(largest(series("five_controller_live_games")), "games"), least=0),
        chart("Bytes", "A second: published by who plays, taken in by the controller, and given to viewers. Each game "
              "is sent to the controller once, however many watch it.",
              Query(total(rate("five_live_sent_bytes_total")), "published"),
              Query(total(rate("five_controller_live_received_bytes_total")), "taken in"),
              Query(total(rate("five_controller_live_delivered_bytes_total")), "given to viewers"), unit="Bps",
              least=0),
        chart("Given up", "In the last hour: messages that the store did not take in time, chunks that a viewer who "
              "had fallen behind was not given, and messages that could not be read.",
              Query(total(increase("five_live_dropped_total")), "not sent"),
              Query(total(increase("five_controller_live_skipped_total")), "skipped"),
              Query(total(increase("five_controller_live_refused_total")), "unreadable"), least=0)]),
    Row("Autoscaling", [
        chart("Pods", "That the autoscaler asks for, and that exist, by component.",
              Query(largest(series("five_controller_autoscaler_desired_instances"), "component"),
                    "{{component}} asked for"),
              Query(largest(series("five_controller_autoscaler_current_instances"), "component"), "{{component}}"),
              least=0),
        chart("Decisions", "Looks in the last hour, by component and by what came of them.",
              Query(total(increase("five_controller_autoscaler_decisions_total"), "component", "reason"),
                    "{{component}}: {{reason}}"), least=0, stacked=True),
        chart("Signal of the rollouts", "Sample reuse if neither side waited for the other. Above the target there are "
              "too few rollouts, below it too many; the two waits say which.",
              Query(largest(series("five_controller_autoscaler_unpaced_reuse_ratio")), "unpaced reuse"),
              Query(largest(series("five_optimizer_sample_reuse_target_ratio")), "target", dashed=True),
              Query(largest(series("five_controller_autoscaler_rollouts_throttled_ratio")), "rollouts throttled"),
              Query(largest(series("five_controller_autoscaler_optimizers_starved_ratio")), "optimizers starved"),
              least=0),
        chart("Signal of inference", "Mean time that a request waits for its batch.",
              Query(largest(series("five_controller_autoscaler_queue_seconds")), "queue"), unit="s", least=0),
        chart("Inference busy", "Share of their time that the servers compute, as the autoscaler sees it.",
              Query(largest(series("five_controller_autoscaler_inference_busy_ratio")), "busy"), unit="percentunit",
              least=0, most=1),
        chart("Failed requests to Kubernetes", "In the last hour, by status; 0: no answer.",
              Query(total(increase("five_controller_autoscaler_api_failures_total"), "status"), "{{status}}"),
              least=0)],
        cluster=True),
])
