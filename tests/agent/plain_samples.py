"""A segment cut by plain slices: what samples that are kept packed (five.services.optimizer.stored_arrays) have to equal."""

from collections.abc import Mapping

from five.agent.learning.samples import STATE_PREFIX, Array, Arrays


def split_segment(arrays: Mapping[str, Array], samples: int) -> list[Arrays]:
    """The samples of a segment, as views of its arrays."""
    steps = {name: len(array) // samples for name, array in arrays.items() if not name.startswith(STATE_PREFIX)}
    assert all(len(array) == samples * steps.get(name, 1) for name, array in arrays.items())
    return [{name: array[i * steps[name] : (i + 1) * steps[name]] if name in steps else array[i]
             for name, array in arrays.items()} for i in range(samples)]
