"""The play service: games at real speed in which people control heroes.

It has no address of an optimizer and sends nothing to one: people's games are never trained on.
"""

import asyncio
from collections.abc import Sequence

from dota import packing
from dota.config import evaluation_game
from dota.spaces import Layout
from five.clients.inference import InferenceClient
from five.clients.inference_pools import inference_pools
from five.protos.v1 import play_pb2_grpc
from five.run.config import RunConfig
from five.run.effective import overlay
from five.run.load import load
from five.services.play.players import Filler, archived_versions, filler
from five.services.play.ratings import RatedPeople
from five.services.play.service import PlayService
from rapid import codec
from rapid.rpc.server import port_of, serve
from rapid.service import Service, start

SPARSE = ("shared", "private")
CLOSE_SECONDS = 1.0  # grace of calls in progress when the process ends


async def play(service: Service[RunConfig]) -> None:
    config = service.config
    settings, pools = config.services.play, config.services.inference
    game = evaluation_game(config.game)
    codec.register(packing.pack_f16, packing.unpacked_f16, packing.pack_changes)
    layout_hash = Layout(game).hash

    def connect(addresses: Sequence[str], name: str) -> InferenceClient:
        return InferenceClient(addresses, config.rpc, layout_hash, service.caller_secret, SPARSE, name=name,
                               epoch=service.epoch)

    def versions() -> list[int]:
        return archived_versions(service.parameters, config.store.archive_every)

    def find_filler(name: str) -> Filler:
        return filler(name, next(iter(archived_versions(service.parameters, config.store.archive_every, 1)), None),
                      service.parameters)

    people = RatedPeople(service.state, config.rating)
    inference = inference_pools(connect, pools.addresses, pools.past_addresses)
    servicer = PlayService(config.name, service.epoch, game, settings, inference, versions, find_filler, people.rate,
                           lambda: service.lifecycle.active, lambda: service.lifecycle.draining,
                           service.folder_for("played", settings.recordings_folder))
    server = await serve(service.listen_address(port_of(settings.address)),
                         [(play_pb2_grpc.add_PlayServiceServicer_to_server, servicer)], config.rpc, service.callers)
    service.announce(server.port)
    service.report_with(
        lambda: "", is_idle=lambda: not service.lifecycle.active and servicer.is_idle, stats=servicer.stats)
    await service.lifecycle.wait_drained()
    await servicer.drain()
    await server.stop(CLOSE_SECONDS)
    await asyncio.wait_for(inference.close(), CLOSE_SECONDS)


def main() -> None:
    with start("play", load, overlay=overlay) as service:
        service.critical_tasks.run(play(service))


if __name__ == "__main__":
    main()
