"""The keys that services read are found in their source, completely."""

from pathlib import Path

import pytest
import yaml

from tools.config_reads import FILE, KINDS, main, model_at, reads, source_reads

# Keys that no service reads when it starts: those of `five train`'s own processes, and the autoscaler's live ones.
UNREAD = {"services.rollout.processes", "services.optimizer.max_optimizers"}


def keys(at: tuple[str, ...] = ()) -> set[str]:
    """Return every key of the configuration."""
    section = model_at(at)
    if section is None:
        return {".".join(at)}
    return {key for name in section.model_fields for key in keys((*at, name))}


def test_reads_file_is_current() -> None:
    assert main(["--check"]) == 0


def test_every_key_is_read_by_a_service() -> None:
    """A change of a key whose reader is overlooked would restart no service."""
    found = {path for paths in yaml.safe_load(FILE.read_text()).values() for path in paths}
    unread = {k for k in keys() if not any(k == p or k.startswith(f"{p}.") for p in found)}
    live = {k for k in unread if k.startswith("services.controller.autoscaler.")}
    assert unread - live == UNREAD
    assert "services.controller.autoscaler.rollout.max" in live
    assert "services.controller.autoscaler.enabled" not in live


@pytest.mark.parametrize("kind", KINDS)
def test_paths_are_keys_and_do_not_overlap(kind: str) -> None:
    found = reads(kind)
    for path in found:
        *above, key = path.split(".")
        section = model_at(tuple(above))
        assert section is not None and key in section.model_fields, path
        assert not any(other.startswith(f"{path}.") for other in found), path


def test_reads_are_found_in_every_form(tmp_path: Path) -> None:
    source = tmp_path / "service.py"
    source.write_text("""
def start(service):
    config, own = service.config, service.config.services.rollout
    pools = config.services.inference
    print(own.games, pools.addresses, own.encoding.endswith("zstd"))
    use(config.learning, service.file_config.seed)
    optimizer = config.services.optimizer
    return [optimizer.address(rank) for rank in range(3)]
""")
    assert source_reads([source]) == {
        "services.rollout.games", "services.rollout.encoding", "services.inference.addresses", "learning", "seed",
        "services.optimizer.addresses", "services.optimizer.ranks_per_node"}


def test_section_passed_on_is_read_whole(tmp_path: Path) -> None:
    source = tmp_path / "service.py"
    source.write_text("def start(config):\n    own = config.services.rollout\n    return own.games, use(own)\n")
    assert "services.rollout" in source_reads([source])


def test_each_function_has_its_own_names(tmp_path: Path) -> None:
    source = tmp_path / "service.py"
    source.write_text("def a(config):\n    own = config.buffer\n    def c():\n        return own.sampling\n\n"
                      "def b(config):\n    own = config.model\n    return own.lstm\n")
    assert source_reads([source]) == {"buffer.sampling", "model.lstm"}


def test_name_of_two_sections_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "service.py"
    source.write_text("def a(config):\n    own = config.game\n    own = config.model\n")
    with pytest.raises(ValueError, match="'own' is game and model"):
        source_reads([source])
