"""A temporary run serves one version to people and leaves nothing behind."""

import pytest

from five.local.rest_client import ControllerClient
from five.local.version_host import host_version, hosting_config
from five.packed_agents.folder import PackedAgent
from five.run.load import load
from rapid.store.state import Status
from tests.packed_agents.tiny_agent import VERSION, packed_agent


def test_only_the_game_and_the_services_sizes_are_taken_over() -> None:
    config = load("gpu-node", ["store.state_url=redis://elsewhere:6379/0", "services.controller.port=1234"])
    found = hosting_config(config)
    assert found.game == config.game and found.model.precision == "float32"
    assert (found.store.state_url, found.store.archive_every, found.blobs.url) == ("", 1, "")
    assert found.services.inference.device == "cpu" and found.services.play.enabled
    assert not found.services.evaluator.enabled and found.services.controller.port != 1234


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> PackedAgent:
    return packed_agent(tmp_path_factory.mktemp("hosted"), ["lifecycle.heartbeat_seconds=0.5"])


@pytest.mark.runs
def test_a_person_plays_against_a_version_without_a_run(agent: PackedAgent) -> None:
    spec = agent.spec
    meta = {"schema": spec.schema, "layout": spec.layout.hash}
    with host_version(agent.config, VERSION, agent.tensors(), meta) as cluster:
        state = cluster.state.status()
        assert state is not None and state.status is Status.RUNNING
        assert {i.kind for i in cluster.leases.live()} == {"controller", "inference", "play"}
        controller = ControllerClient(cluster.folder.cluster().rest, cluster.folder.operator_token())
        offer = controller.get("play")
        assert (offer["why"], offer["versions"], offer["heroes"]) == ("", [VERSION], ["nevermore"])
        opened = controller.post("play/games", {"team": 1, "heroes": [0], "against": "newest", "seed": 3})
        game = controller.get(f"play/games/{opened['game']}")
        assert game["version"] == VERSION and game["players"] == [f"version-{VERSION}"] * 2
        assert [seat["team"] for seat in opened["seats"]] == [1]
    assert not cluster.folder.path.parent.exists()
