"""Test of every gRPC endpoint of the run by the standard health service.

usage: grpc_endpoints.py CONFIG SECONDS
"""

import sys
import time

from five.run.load import load
from rapid.rpc.health import is_serving


def targets(config):
    """Return every address at which services are dialled."""
    services = config.services
    found = [*services.inference.addresses, *services.inference.past_addresses, services.opponents.address]
    found += [services.optimizer.address(rank) for rank in range(services.optimizer.optimizers)]
    if services.rollout.environment == "remote":
        found += services.dota_env.addresses
    if services.evaluator.enabled:
        found.append(services.evaluator.address)
    if services.play.enabled:
        found.append(services.play.address)
    # A rollout's game containers serve only that rollout.
    return [target for target in found if target.partition(":")[0] not in ("localhost", "127.0.0.1")]


def main(path, seconds):
    config = load(path)
    waiting = targets(config)
    if not waiting:
        sys.exit(f"{path} names no service")
    end = time.monotonic() + seconds
    while waiting:
        for target in list(waiting):
            if is_serving(target, config.rpc):
                waiting.remove(target)
                print(f"{target} serves")
        if waiting and time.monotonic() > end:
            sys.exit(f"not serving after {seconds:g} s: {', '.join(waiting)}")
        time.sleep(0.2)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
