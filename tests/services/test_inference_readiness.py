"""/readyz of an inference server before its first version."""

from typing import Any

from five.services.inference.__main__ import why_not_ready
from five.services.inference.models import Models
from tests.services.counting import CountingBuilder, Versions
from tests.waiting import eventually


def test_failed_load_of_the_first_version_is_reported() -> None:
    versions, builder = Versions(), CountingBuilder()
    models = Models(versions, builder, past_bytes=2, poll_seconds=0.005)
    load, failing = builder.load, [True]

    def sometimes(*arguments: Any) -> None:
        if failing:
            raise ValueError("the model configuration changed")
        load(*arguments)

    builder.load = sometimes  # type: ignore[method-assign]
    assert why_not_ready(models) == "no version has been loaded yet"
    models.start()
    try:
        versions.publish(0)
        says = "no version could be loaded yet: ValueError: the model configuration changed"
        eventually(lambda: why_not_ready(models) == says)
        failing.clear()
        eventually(lambda: why_not_ready(models) == "" == models.failure, 60.0)
    finally:
        models.close()
