"""Prometheus metrics, each defined once with its meaning: ``five_<service>_<what>_<unit>``.

A service defines its metrics at the top of a module with ``counter``, ``gauge`` and ``histogram``; the definitions
are what docs/metrics.md and the dashboards' check are made from.
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

# A second series for each counter, which nothing reads.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]


class LabelledRegistry(CollectorRegistry):
    """The metrics of this process. ``common`` are labels that every sample gets when it is read: which run it is of,
    so that runs which share a Prometheus can be told apart however it finds them, and which kind of service."""

    def __init__(self) -> None:
        super().__init__(auto_describe=True)
        self.common: dict[str, str] = {}

    def collect(self) -> Iterator[Metric]:
        """All metrics, with the common labels."""
        for family in super().collect():
            if not self.common:
                yield family
                continue
            # A family may be the metric's own: what is changed is a copy.
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
    """What a metric is called and means."""

    name: str
    kind: Kind
    service: str
    unit: str
    help: str
    labels: tuple[str, ...]


class Histogram(PlainHistogram):
    """A distribution that also takes many values at once: one of each timestep of a batch is too many calls."""

    def observe_all(self, values: npt.NDArray[Any]) -> None:
        """As ``observe`` of each of ``values``, of any shape; for a histogram without labels."""
        # As observe() does it, bucket by bucket: a value is counted in the first bucket whose bound it does not exceed.
        buckets = np.searchsorted(self._upper_bounds, values.reshape(-1), side="left")
        self._sum.inc(float(values.sum()))
        for bucket, count in zip(*np.unique(buckets, return_counts=True), strict=True):
            self._buckets[bucket].inc(int(count))


_definitions: dict[str, Definition] = {}
_lock = threading.Lock()


def _define(kind: Kind, service: str, what: str, unit: str, meaning: str, labels: Sequence[str]) -> str:
    """Notes a definition. Returns the name that prometheus_client wants.

    Raises ValueError for a name outside the scheme, a missing meaning, or a metric that exists.
    """
    for part, value in (("service", service), ("what", what)):
        if not _NAME.fullmatch(value):
            raise ValueError(f"metric {part} {value!r}: lower case words joined by '_'")
    if unit not in UNITS:
        raise ValueError(f"metric unit {unit!r}: one of {', '.join(UNITS)}")
    if (kind == "counter") != (unit == "total"):
        raise ValueError(f"metric {service}_{what}: counters, and only they, have the unit 'total'")
    if not meaning.endswith("."):
        raise ValueError(f"metric {service}_{what}: its meaning is a sentence")
    name = f"five_{service}_{what}_{unit}"
    with _lock:
        if name in _definitions:
            raise ValueError(f"metric {name} is defined twice")
        _definitions[name] = Definition(name, kind, service, unit, meaning, tuple(labels))
    return name.removesuffix("_total") if kind == "counter" else name


def counter(service: str, what: str, meaning: str, labels: Sequence[str] = ()) -> Counter:
    """Defines five_<service>_<what>_total, which only grows."""
    return Counter(_define("counter", service, what, "total", meaning, labels), meaning, labels, registry=REGISTRY)


def gauge(service: str, what: str, unit: str, meaning: str, labels: Sequence[str] = ()) -> Gauge:
    """Defines five_<service>_<what>_<unit>, a present value."""
    return Gauge(_define("gauge", service, what, unit, meaning, labels), meaning, labels, registry=REGISTRY)


def histogram(service: str, what: str, unit: str, meaning: str, labels: Sequence[str] = (),
              buckets: Sequence[float] = SECONDS_BUCKETS) -> Histogram:
    """Defines five_<service>_<what>_<unit>, a distribution."""
    return Histogram(_define("histogram", service, what, unit, meaning, labels), meaning, labels, registry=REGISTRY,
                     buckets=tuple(buckets))


def set_unknown(gauge: Gauge) -> Gauge:
    """``gauge`` as NaN until it is set: nothing has been measured, which is not the same as zero."""
    gauge.set(math.nan)
    return gauge


def definitions() -> list[Definition]:
    """Every metric that the modules imported so far define, by service and name."""
    with _lock:
        return sorted(_definitions.values(), key=lambda d: (d.service, d.name))


def snapshot() -> dict[str, float]:
    """Present values of counters and gauges by name, summed over labels; of histograms their _sum and _count."""
    values: dict[str, float] = {}
    for family in REGISTRY.collect():
        for sample in family.samples:
            if sample.name.endswith(("_created", "_bucket")):
                continue
            values[sample.name] = values.get(sample.name, 0.0) + sample.value
    return values


# Memory, CPU time, file descriptors and start time under their usual names (process_...), where the system tells.
ProcessCollector(registry=REGISTRY)
PROCESS_INFO = gauge("process", "started", "info", "Always 1; says which run and service instance the page is of.",
                     ("run", "kind", "id"))
LOGGED = counter("process", "log_records", "Log records by level, warnings and worse.", ("level",))
for _level in ("warning", "error"):
    LOGGED.labels(_level)  # a series that begins with its first event has no rate before the second


def identify(run: str, kind: str, identity: str) -> None:
    """Says which run, kind of service and instance this process is; its metrics carry run and kind from then on."""
    REGISTRY.common = {"run": run, "kind": kind}
    PROCESS_INFO.labels(run, kind, identity).set(1)


def metrics_reference() -> str:
    """The definitions as a Markdown table by service: the body of docs/metrics.md."""
    lines: list[str] = []
    service = ""
    for d in definitions():
        if d.service != service:
            service = d.service
            lines += ["", f"## {service}", "", "| metric | kind | labels | meaning |", "|---|---|---|---|"]
        labels = ", ".join(f"`{label}`" for label in d.labels)
        lines.append(f"| `{d.name}` | {d.kind} | {labels} | {d.help} |")
    return "\n".join(lines).strip() + "\n"
