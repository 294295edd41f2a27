"""Connections between processes, as docs/design.md draws them: who connects to whom in every form of deployment.

Tests compare it with the services' code and the chart's network policies (tests/charts/test_network.py) and with the
networks of docker-compose.yml (tests/containers/test_networks.py).
"""

# Caller: whom it calls. A Redis calls nobody.
CALLS: dict[str, frozenset[str]] = {caller: frozenset(called) for caller, called in {
    "rollout": {"inference", "optimizer", "opponents", "dota-env", "redis-state"},
    "inference": {"redis-state", "redis-params"},
    "optimizer": {"optimizer", "redis-state", "redis-params"},
    "opponents": {"redis-state"},
    "evaluator": {"inference", "redis-state"},
    "play": {"inference", "redis-state"},
    "controller": {"evaluator", "play", "redis-state", "redis-params"},
    "dota-env": set(),
    "dotaservice": set(),  # called by foreign trainers, which run elsewhere
}.items()}
SERVICES = frozenset(CALLS)
# Prometheus reads the metrics of every service.
SCRAPED = SERVICES
