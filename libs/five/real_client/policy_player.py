"""Policy that plays one team of a real client."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from google.protobuf.message import DecodeError

from dota.client_state import ClientGame
from dota.config import GameConfig
from five.agent.compute import torch_threads
from five.agent.model.policy import Policy
from five.protos.valve.bot_world_state_pb2 import CMsgBotWorldState
from five.real_client.command_orders import CommandOrders
from five.real_client.frames import Frame


@dataclass
class PolicyPlayer:
    """Team that a policy plays. ``config`` is the policy's game; ``seed`` determines what it samples.

    Attributes:
        damaged: frames that the policy did not see because bytes of them were lost.
    """

    policy: Policy
    config: GameConfig
    seed: int = 0
    greedy: bool = False
    damaged: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.game = ClientGame(self.config)
        if self.policy.layout.hash != self.game.layout.hash:
            raise ValueError(f"the policy reads layout {self.policy.layout.hash}, a client's observations have "
                             f"{self.game.layout.hash}: play an agent whose game hides what its team cannot see "
                             "(game.hide_unseen)")
        self._orders = CommandOrders(self.config)
        self._state = self.policy.initial_state(1)
        self._generator = torch.Generator().manual_seed(self.seed)

    def orders(self, frames: Sequence[Frame]) -> list[dict[str, Any]]:
        """Return the orders that answer the last frame. Frames that lack bytes are not shown to the policy: its heroes
        go on with what they do."""
        whole = [frame for frame in frames if not frame.lost_bytes and not self.game.update(frame.payload)]
        self.damaged += len(frames) - len(whole)
        if not whole:
            return []
        try:
            state = CMsgBotWorldState.FromString(whole[-1].payload)
        except DecodeError:
            self.damaged += 1
            return []
        observation = {name: torch.from_numpy(array[None]) for name, array in self.game.obs.items()}
        with torch_threads(1):
            acted = self.policy.act(observation, self._state, generator=self._generator, greedy=self.greedy)
        self._state = acted.state
        commands = self.game.choose(acted.actions[0].numpy())
        return self._orders.orders(state, commands)
