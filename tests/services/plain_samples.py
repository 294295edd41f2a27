"""The samples of a segment by its plain arrays: what samples that rest in a message are compared with."""

from collections.abc import Mapping

from five.agent.learning.samples import STATE_PREFIX, Array, Arrays


def split_segment(arrays: Mapping[str, Array], samples: int) -> list[Arrays]:
    """As views; recurrent states lead with the number of samples, all others with timesteps."""
    return [{name: array[k] if name.startswith(STATE_PREFIX)
             else array.reshape(samples, len(array) // samples, *array.shape[1:])[k] for name, array in arrays.items()}
            for k in range(samples)]
