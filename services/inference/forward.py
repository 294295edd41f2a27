"""The forward pass of a batch's rows, by the device: what the batcher asks of it, and how a CPU does it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
import torch

from five.agent.model.policy import PolicyActor
from five.services.inference.models import Served
from five.services.inference.requests import Array, Arrays, Request
from five.services.inference.rows import joined, to_numpy
from five.services.inference.sessions import SessionTable


@dataclass(frozen=True)
class Part:
    """Rows of a batch that one version plays. ``rows`` int64 [n]: which they are, None for all. The rest is theirs
    alone: ``slots`` int64 [n] of their states, ``replayed`` int16 [n, H, 6] (-1: to be chosen), ``want`` and ``thinks``
    bool [n]: whether their states, and their thoughts, are asked for."""

    rows: npt.NDArray[np.int64] | None
    slots: npt.NDArray[np.int64]
    want: npt.NDArray[np.bool_]
    thinks: npt.NDArray[np.bool_]
    greedy: bool = False
    replayed: npt.NDArray[np.int16] | None = None

    @classmethod
    def of(cls, rows: npt.NDArray[np.int64] | None, slots: npt.NDArray[np.int64], want: npt.NDArray[np.bool_],
           thinks: npt.NDArray[np.bool_], greedy: bool, replayed: npt.NDArray[np.int16] | None) -> "Part":
        """These rows of a whole batch's arrays."""
        if rows is None:
            return cls(None, slots, want, thinks, greedy, replayed)
        return cls(rows, slots[rows], want[rows], thinks[rows], greedy, None if replayed is None else replayed[rows])


class Forward(Protocol):
    """How rows are evaluated. The batcher's thread alone calls it, but for ``stage``.

    ``packed``: whether requests may hold observations in the sparse encoding (`rapid.packed_array.PackedArray`).
    """

    packed: bool

    def prepare(self, turn: Callable[[], None]) -> None:
        """What is to be done before the first batch; ``turn`` is called now and then."""
        ...

    def stage(self, request: Request) -> None:
        """Begins to bring a request's observations to the device, on the thread that submits it."""
        ...

    def join(self, requests: Sequence[Request]) -> Any:
        """The observations of a batch, request after request."""
        ...

    def launch(self, served: Served, batch: Any, part: Part) -> Callable[[], Arrays]:
        """Begins one version's forward pass and moves the states on; what it returns waits for the results.

        ``actions`` int16 [n, H, 6], ``logp`` and ``values`` float32 [n, H]; ``state/...`` (before the step) and
        ``aux/...`` lead with the rows that want their state, ``thought/...`` with those that are watched.
        """
        ...


class HostForward:
    """On the CPU, as arrays come."""

    packed = False

    def __init__(self, table: SessionTable, seed: int) -> None:
        self._table = table
        self._generator = torch.Generator()
        self._generator.manual_seed(seed)

    def prepare(self, turn: Callable[[], None]) -> None:
        """As many threads as the process has are said to this one too: MKL's functions of vectors go by a thread's own
        number, and would take all cores for a few hundred logarithms, and wait for more with the cores in hand."""
        torch.set_num_threads(torch.get_num_threads())

    def stage(self, request: Request) -> None:
        """They are where they are needed."""

    def join(self, requests: Sequence[Request]) -> Arrays:
        """Arrays; those of a single request as they are."""
        return {name: joined([cast(Array, request.observations[name]) for request in requests])
                for name in requests[0].observations}

    def launch(self, served: Served, batch: Arrays, part: Part) -> Callable[[], Arrays]:
        """Evaluates at once."""
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
            if part.thinks.any():
                watched = torch.from_numpy(np.flatnonzero(part.thinks))
                out |= {f"thought/{name}": to_numpy(shown, np.float16)
                        for name, shown in policy_debug(flattened(acted), watched).items()}
        return lambda: out

    def _act_natively(self, actor: PolicyActor, batch: Arrays, part: Part) -> Callable[[], Arrays]:
        """As the bytes came: nothing of a message is copied."""
        before = self._table.take(part.slots)
        acted = actor(batch, before, self._generator, part.greedy)
        self._table.put(part.slots, acted.state)
        out: Arrays = {"actions": acted.actions, "logp": acted.logp, "values": acted.values}
        if part.want.any():
            out |= {f"state/{name}": state[part.want] for name, state in before.items()}
            out |= {f"aux/{name}": head[part.want] for name, head in acted.aux.items()}
        if part.thinks.any():
            shown = {**acted.aux, "choice": np.exp(acted.primary), "aim": np.exp(acted.unit)}
            out |= {f"thought/{name}": array[part.thinks].astype(np.float16) for name, array in shown.items()}
        return lambda: out


def flattened(acted: Any) -> dict[str, torch.Tensor]:
    """What a policy returned, by name: ``actions``, ``logp``, ``values``, ``state/...`` (after the step), ``aux/...``;
    ``choice`` and ``aim`` where it tells its log-probabilities of primary actions and of targets."""
    out = {"actions": acted.actions, "logp": acted.logp, "values": acted.values}
    out |= {f"state/{name}": state for name, state in acted.state.items()}
    out |= {f"aux/{name}": head for name, head in acted.aux.items()}
    out |= {name: logp for name, logp in (("choice", acted.primary), ("aim", acted.unit)) if logp is not None}
    return out


def policy_debug(acted: dict[str, torch.Tensor], rows: torch.Tensor) -> dict[str, torch.Tensor]:
    """What is shown of rows to who watches them, of what `flattened` gave."""
    out = {name[4:]: head[rows] for name, head in acted.items() if name.startswith("aux/")}
    return out | {name: acted[name][rows].exp() for name in ("choice", "aim") if name in acted}


def _tensor(array: Array) -> torch.Tensor:
    return torch.from_numpy(array if array.flags.writeable else array.copy())  # else a view of a message's bytes
