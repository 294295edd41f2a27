"""Samples of a metrics module that was executed just now."""

import importlib.util

import pytest

from rapid.telemetry import metrics


def initial_samples(module: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, float]]:
    """Execute a module in a registry of its own; return its samples' values by name, and by labels joined by spaces.

    The process's registry also has series that other tests started.
    """
    registry = metrics.LabelledRegistry()
    with monkeypatch.context() as patched:
        patched.setattr(metrics, "REGISTRY", registry)
        patched.setattr(metrics, "_definitions", {})
        spec = importlib.util.find_spec(module)
        assert spec is not None and spec.loader is not None
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    samples: dict[str, dict[str, float]] = {}
    for family in registry.collect():
        for sample in family.samples:
            samples.setdefault(sample.name, {})[" ".join(sample.labels.values())] = sample.value
    return samples
