"""Prometheus metrics, each defined once with its meaning: ``five_<service>_<what>_<unit>``.

A service defines its metrics at the top of a module with ``counter``, ``gauge`` and ``histogram``. docs/metrics.md and
the checks of the dashboards use these definitions.
"""

import math
import re
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client import Histogram as PlainHistogram
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector

# They would double the number of counter series, and nothing reads them.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]


class LabelledRegistry(CollectorRegistry):
    """Registry of this process's metrics that adds the labels ``common`` to every sample when it is collected.

    The labels run and kind distinguish runs that share a Prometheus, whatever its service discovery is.
    """

    def __init__(self) -> None:
        super().__init__(auto_describe=True)
        self.common: dict[str, str] = {}

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics with the common labels."""
        for family in super().collect():
            if not self.common:
                yield family
                continue
            # Copied, because a family may be the metric's own object.
            labelled = Metric(family.name, family.documentation, family.type, family.unit)
            labelled.samples = [sample._replace(labels={**self.common, **sample.labels}) for sample in family.samples]
            yield labelled


REGISTRY = LabelledRegistry()
COMMON_LABELS = ("run", "kind")
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
UNITS = ("total", "seconds", "timestamp_seconds", "bytes", "ratio", "versions", "steps", "samples", "games",
         "segments", "sessions", "instances", "state", "info", "rating", "rate", "norm", "loss", "reward", "nats",
         "statistic", "flop", "keys")

Kind = Literal["counter", "gauge", "histogram"]
# Latencies from 100 µs to 10 s.
SECONDS_BUCKETS = (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Definition(NamedTuple):
    """Name and meaning of a metric."""

    name: str
    kind: Kind
    service: str
    unit: str
    help: str
    labels: tuple[str, ...]


class Histogram(PlainHistogram):
    """A histogram that accepts arrays, because one call per timestep of a batch is too slow."""

    def observe_all(self, values: npt.NDArray[Any]) -> None:
        """Observe each of ``values``, of any shape. Only for a histogram without labels."""
        # Like observe(): a value counts in the first bucket whose bound it does not exceed.
        buckets = np.searchsorted(self._upper_bounds, values.reshape(-1), side="left")
        self._sum.inc(float(values.sum()))
        for bucket, count in zip(*np.unique(buckets, return_counts=True), strict=True):
            self._buckets[bucket].inc(int(count))


_definitions: dict[str, Definition] = {}
_lock = threading.Lock()


def _define(kind: Kind, service: str, what: str, unit: str, meaning: str, labels: Sequence[str]) -> str:
    """Record a definition and return the name for prometheus_client.

    Raises ValueError for a name outside the scheme, a missing meaning, or an existing metric.
    """
    for part, value in (("service", service), ("what", what)):
        if not _NAME.fullmatch(value):
            raise ValueError(f"metric {part} {value!r}: only lowercase words joined by '_' are allowed")
    if unit not in UNITS:
        raise ValueError(f"metric unit {unit!r}: must be one of {', '.join(UNITS)}")
    if (kind == "counter") != (unit == "total"):
        raise ValueError(f"metric {service}_{what}: the unit 'total' is for counters, and counters need it")
    if not meaning.endswith("."):
        raise ValueError(f"metric {service}_{what}: its meaning must be a sentence that ends with '.'")
    name = f"five_{service}_{what}_{unit}"
    with _lock:
        if name in _definitions:
            raise ValueError(f"metric {name} is defined twice")
        _definitions[name] = Definition(name, kind, service, unit, meaning, tuple(labels))
    return name.removesuffix("_total") if kind == "counter" else name


def counter(service: str, what: str, meaning: str, labels: Sequence[str] = ()) -> Counter:
    """Define five_<service>_<what>_total, which only grows."""
    return Counter(_define("counter", service, what, "total", meaning, labels), meaning, labels, registry=REGISTRY)


def gauge(service: str, what: str, unit: str, meaning: str, labels: Sequence[str] = ()) -> Gauge:
    """Define five_<service>_<what>_<unit>, a current value."""
    return Gauge(_define("gauge", service, what, unit, meaning, labels), meaning, labels, registry=REGISTRY)


def histogram(service: str, what: str, unit: str, meaning: str, labels: Sequence[str] = (),
              buckets: Sequence[float] = SECONDS_BUCKETS) -> Histogram:
    """Define five_<service>_<what>_<unit>, a distribution."""
    return Histogram(_define("histogram", service, what, unit, meaning, labels), meaning, labels, registry=REGISTRY,
                     buckets=tuple(buckets))


def set_unknown(gauge: Gauge) -> Gauge:
    """Set a gauge to NaN until its first measurement, and return it: unknown is not zero."""
    gauge.set(math.nan)
    return gauge


def definitions() -> list[Definition]:
    """Return every metric that the imported modules define, by service and name."""
    with _lock:
        return sorted(_definitions.values(), key=lambda d: (d.service, d.name))


def snapshot() -> dict[str, float]:
    """Return current values by name: counters and gauges summed over labels, histograms as their _sum and _count."""
    values: dict[str, float] = {}
    for family in REGISTRY.collect():
        for sample in family.samples:
            if sample.name.endswith(("_created", "_bucket")):
                continue
            values[sample.name] = values.get(sample.name, 0.0) + sample.value
    return values


# Memory, CPU time, file descriptors and start time under their usual names (process_...), where the system has them.
ProcessCollector(registry=REGISTRY)
PROCESS_INFO = gauge("process", "started", "info", "Always 1; its labels name the run and the service instance.",
                     ("run", "kind", "id"))
LOGGED = counter("process", "log_records", "Log records by level, from warnings up.", ("level",))
for _level in ("warning", "error"):
    LOGGED.labels(_level)  # created now, because the rate of a new series starts only at its second event


def identify(run: str, kind: str, identity: str) -> None:
    """Set run, kind and instance of this process. Its metrics carry run and kind from then on."""
    REGISTRY.common = {"run": run, "kind": kind}
    PROCESS_INFO.labels(run, kind, identity).set(1)


def metrics_reference() -> str:
    """Return the definitions as Markdown tables by service: the body of docs/metrics.md."""
    lines: list[str] = []
    service = ""
    for d in definitions():
        if d.service != service:
            service = d.service
            lines += ["", f"## {service}", "", "| metric | kind | labels | meaning |", "|---|---|---|---|"]
        labels = ", ".join(f"`{label}`" for label in d.labels)
        lines.append(f"| `{d.name}` | {d.kind} | {labels} | {d.help} |")
    return "\n".join(lines).strip() + "\n"
