"""The forward pass of a batch: the interface that the batcher uses, and its implementation on the CPU."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
import torch

from five.agent.model.policy import PolicyActor
from five.services.inference.models import ResidentVersion
from five.services.inference.requests import Array, Arrays, Request
from five.services.inference.rows import concatenate, to_numpy
from five.services.inference.sessions import SessionTable


@dataclass(frozen=True)
class VersionRows:
    """Rows of a batch that one version plays.

    ``rows`` int64 [n] are their indices in the batch; None means all. The other arrays hold only these rows:
    ``slots`` int64 [n] of their states, ``replayed`` int16 [n, H, 6] (-1: the policy chooses), ``want`` and
    ``want_debug`` bool [n] (the client requested the state, and the policy debug data).
    """

    rows: npt.NDArray[np.int64] | None
    slots: npt.NDArray[np.int64]
    want: npt.NDArray[np.bool_]
    want_debug: npt.NDArray[np.bool_]
    greedy: bool
    replayed: npt.NDArray[np.int16] | None

    @classmethod
    def of(cls, rows: npt.NDArray[np.int64] | None, slots: npt.NDArray[np.int64], want: npt.NDArray[np.bool_],
           want_debug: npt.NDArray[np.bool_], greedy: bool, replayed: npt.NDArray[np.int16] | None) -> "VersionRows":
        """Select these rows from the arrays of a whole batch."""
        if rows is None:
            return cls(None, slots, want, want_debug, greedy, replayed)
        return cls(rows, slots[rows], want[rows], want_debug[rows], greedy,
                   None if replayed is None else replayed[rows])


class Forward(Protocol):
    """Interface of a forward pass. Only the batcher's thread calls it, except for ``stage``.

    ``packed``: whether requests may hold observations in the sparse encoding (`rapid.packed_array.PackedArray`).
    """

    packed: bool

    def prepare(self, beat: Callable[[], None]) -> None:
        """Prepare for the first batch. Call ``beat`` regularly, so that the watchdog sees progress."""
        ...

    def stage(self, request: Request) -> None:
        """Begin to copy the observations of a request to the device, on the thread that submits it."""
        ...

    def join(self, requests: Sequence[Request]) -> Any:
        """Concatenate the observations of the requests of a batch."""
        ...

    def launch(self, served: ResidentVersion, batch: Any, part: VersionRows) -> Callable[[], Arrays]:
        """Begin one version's forward pass and update the states. The returned function waits for the results.

        The results are ``actions`` int16 [n, H, 6], and ``logp`` and ``values`` float32 [n, H]. ``state/...`` (before
        the step) and ``aux/...`` have one row for each row that wants its state, and ``debug/...`` one for each
        watched row.
        """
        ...


class HostForward:
    """Forward passes on the CPU, on the arrays as they arrive."""

    packed = False

    def __init__(self, table: SessionTable, seed: int) -> None:
        self._table = table
        self._generator = torch.Generator()
        self._generator.manual_seed(seed)

    def prepare(self, beat: Callable[[], None]) -> None:
        """Set the number of threads of this thread to that of the process.

        The vector functions of MKL use a number per thread. Without it they would use all cores for a few hundred
        logarithms, and block those cores while they wait for more work.
        """
        torch.set_num_threads(torch.get_num_threads())

    def stage(self, request: Request) -> None:
        """Do nothing: the arrays are in host memory already."""

    def join(self, requests: Sequence[Request]) -> Arrays:
        """Concatenate the arrays; return those of a single request uncopied."""
        return {name: concatenate([cast(Array, request.observations[name]) for request in requests])
                for name in requests[0].observations}

    def launch(self, served: ResidentVersion, batch: Arrays, part: VersionRows) -> Callable[[], Arrays]:
        """Run the forward pass at once."""
        if part.rows is not None:
            batch = {name: array[part.rows] for name, array in batch.items()}
        actor = getattr(served.policy, "actor", None)
        if actor is not None and part.replayed is None and actor.accepts(batch):
            return self._act_natively(actor, batch, part)
        with torch.inference_mode():
            before = self._table.gather(part.slots)
            acted = served.policy.act(
                {name: _tensor(array) for name, array in batch.items()}, before, generator=self._generator,
                greedy=part.greedy, replay=None if part.replayed is None else _tensor(part.replayed))
            self._table.scatter(part.slots, acted.state)
            out = {"actions": to_numpy(acted.actions, np.int16), "logp": to_numpy(acted.logp, np.float32),
                   "values": to_numpy(acted.values, np.float32)}
            if part.want.any():
                wanted = torch.from_numpy(np.flatnonzero(part.want))
                for name, state in before.items():
                    out[f"state/{name}"] = to_numpy(state[wanted], np.float32)
                for name, head in acted.aux.items():
                    out[f"aux/{name}"] = to_numpy(head[wanted], np.float32)
            if part.want_debug.any():
                watched = torch.from_numpy(np.flatnonzero(part.want_debug))
                out |= {f"debug/{name}": to_numpy(shown, np.float16)
                        for name, shown in policy_debug(flatten_outputs(acted), watched).items()}
        return lambda: out

    def _act_natively(self, actor: PolicyActor, batch: Arrays, part: VersionRows) -> Callable[[], Arrays]:
        """Run the native policy on the bytes of the message without copying them."""
        before = self._table.take(part.slots)
        acted = actor(batch, before, self._generator, part.greedy)
        self._table.put(part.slots, acted.state)
        out: Arrays = {"actions": acted.actions, "logp": acted.logp, "values": acted.values}
        if part.want.any():
            out |= {f"state/{name}": state[part.want] for name, state in before.items()}
            out |= {f"aux/{name}": head[part.want] for name, head in acted.aux.items()}
        if part.want_debug.any():
            shown = {**acted.aux, "choice": np.exp(acted.primary), "aim": np.exp(acted.unit)}
            out |= {f"debug/{name}": array[part.want_debug].astype(np.float16) for name, array in shown.items()}
        return lambda: out


def flatten_outputs(acted: Any) -> dict[str, torch.Tensor]:
    """Return the outputs of a policy by name.

    The names are ``actions``, ``logp``, ``values``, ``state/...`` (after the step) and ``aux/...``. ``choice`` and
    ``aim`` are present if the policy returns its log-probabilities of primary actions and of targets.
    """
    out = {"actions": acted.actions, "logp": acted.logp, "values": acted.values}
    out |= {f"state/{name}": state for name, state in acted.state.items()}
    out |= {f"aux/{name}": head for name, head in acted.aux.items()}
    out |= {name: logp for name, logp in (("choice", acted.primary), ("aim", acted.unit)) if logp is not None}
    return out


def policy_debug(acted: dict[str, torch.Tensor], rows: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the policy debug data of ``rows``, from the outputs that `flatten_outputs` returned."""
    out = {name[4:]: head[rows] for name, head in acted.items() if name.startswith("aux/")}
    return out | {name: acted[name][rows].exp() for name in ("choice", "aim") if name in acted}


def _tensor(array: Array) -> torch.Tensor:
    # A read-only array is a view of a message.
    return torch.from_numpy(array if array.flags.writeable else array.copy())
