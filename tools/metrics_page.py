"""Generator of docs/metrics.md from the metrics' definitions: ``python -m tools.metrics_page [FILE]``."""

import importlib
import pkgutil
import sys
from pathlib import Path

import rapid
from five import services
from rapid.telemetry.metrics import metrics_reference

PAGE = Path(__file__).resolve().parents[1] / "docs" / "metrics.md"
HEAD = """# Metrics

Every process serves its metrics at `/metrics` of its metrics port (9100 in containers; the address is in its log and,
for `five train`, in its heartbeat). Names are `five_<service>_<what>_<unit>`; a counter ends in `_total`, a
histogram has `_bucket`, `_sum` and `_count`. This page is made from the definitions by `python -m tools.metrics_page`.

Every series carries the labels `run` and `kind` (the kind of service: `rollout`, `optimizer`, ...) in addition to
those in the tables, so that runs can share a Prometheus. Values that were not measured yet are `NaN`, not 0. Each
process also shows `process_cpu_seconds_total`, `process_resident_memory_bytes`, `process_open_fds`, `process_max_fds`
and `process_start_time_seconds`.

Prometheus must scrape each process by itself: every pod, not a service's address that balances between them. The
dashboards (`charts/dashboards`, made by `python -m tools.dashboards`) and the alerts (`charts/files/rules.yaml`) need
no particular job names; they use `namespace` and `pod` where a cluster's scrape sets them, and scrapes at least every
30 seconds.

"""


def import_all() -> None:
    """Import every module that may define metrics."""
    for package in (rapid, services):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


def page() -> str:
    """Return the text of docs/metrics.md."""
    import_all()
    return HEAD + metrics_reference()


def main(arguments: list[str]) -> None:
    """Write the page."""
    (Path(arguments[0]) if arguments else PAGE).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
