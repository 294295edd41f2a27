"""The list of targets is complete: every message, and every function that decodes bytes or text."""

from collections.abc import Iterator

from google.protobuf.descriptor import Descriptor

from five.protos.v1 import env_pb2, evaluator_pb2, experience_pb2, inference_pb2, opponents_pb2, play_pb2, tensors_pb2
from tests.fuzz.decoders import find_decoders
from tests.fuzz.targets import all_targets
from tests.repository import ROOT

PROTOS = (env_pb2, evaluator_pb2, experience_pb2, inference_pb2, opponents_pb2, play_pb2, tensors_pb2)
OWN_DATA = "reads the package's own data"
INNER = "is a part of a decoder that has a target, or calls only such"
OWN_OUTPUT = "reads what this process has just made"
OWN_FOLDER = "reads a file in the user's folder that only this program writes"
HASH = "makes a number of a hash"
# Functions that decode nothing from outside the process, with the reason.
TRUSTED = {
    "dota/choices.py:_data": OWN_DATA,
    "dota/client_state.py:_numbers": OWN_DATA,
    "dota/picture.py:MapPicture.__init__": OWN_DATA,
    "dota/valve_ids.py:_read": OWN_DATA,
    "dota/presets.py:names": OWN_DATA,
    "dota/presets.py:load": OWN_DATA,
    "dota/presets.py:main": OWN_DATA,
    "dota/registry.py:read": OWN_DATA,
    "dota/spaces.py:_abilities_of": OWN_DATA,
    "dota/spectator/facts.py:_data": OWN_DATA,
    "dota/spectator/header.py:_map": OWN_DATA,
    "dota/tables.py:load_tables": OWN_DATA,
    "five/services/controller/console/static_files.py:ConsoleSite.__init__": OWN_DATA,
    "dota/play.py:InteractiveGame.frame": OWN_OUTPUT,
    "five/evaluation/draft_table.py:_load_partial": OWN_OUTPUT,
    "dota/vec_game.py:VecGame.commands": OWN_OUTPUT,
    "dota/vec_game.py:VecGame.slot_units": OWN_OUTPUT,
    "five/reports/run_report.py:RecordHistory.newest_first": OWN_OUTPUT,
    "five/reports/run_report.py:RecordHistory.older_rows": OWN_OUTPUT,
    "rapid/codec.py:register": OWN_OUTPUT,
    "rapid/packed_array.py:PackedRows.present": OWN_OUTPUT,
    "five/agent/surgery/steps/game.py:ChangeGame._is_json": OWN_OUTPUT,
    "five/evaluation/saved_state.py:save_record": OWN_OUTPUT,
    "five/services/controller/operations/store.py:_row": OWN_OUTPUT,
    "five/services/controller/surgery/rehearsals.py:_row": OWN_OUTPUT,
    "rapid/reexec.py:inherited_socket": OWN_OUTPUT,
    "five/services/inference/staging.py:_bytes_of": "takes arrays that InferenceService._decode has checked",
    "five/services/optimizer/process_group.py:OptimizerGroup.broadcast_bytes": "collective of torch, no format of Five",
    "five/agent/anneal/pair_records.py:pair_seed": HASH,
    "five/agent/anneal/variants.py:hash_fraction": HASH,
    "five/agent/ladder.py:Ladder._generate_games": HASH,
    "five/agent/surgery/remap.py:remap_tensor": HASH,
    "five/services/opponents/pool.py:OpponentPool._random": HASH,
    "five/ablation/evaluation.py:Anchors.read": OWN_FOLDER,
    "five/ablation/runner.py:Ablation._evaluate": OWN_FOLDER,
    "five/ablation/runner.py:_read_json": OWN_FOLDER,
    "five/ablation/runner.py:read_description": OWN_FOLDER,
    "five/cli/evaluate.py:render_report": OWN_FOLDER,
    "five/cli/games.py:read_log": OWN_FOLDER,
    "five/cli/ladder.py:rows_of": OWN_FOLDER,
    "five/evaluation/journal.py:Journal.__init__": OWN_FOLDER,
    "five/local/passwords.py:Passwords._read": OWN_FOLDER,
    "five/local/rotation.py:request_rotation": OWN_FOLDER,
    "five/local/rotation.py:pending_users": OWN_FOLDER,
    "five/local/run_folder.py:RunFolder.cluster": OWN_FOLDER,
    "five/local/run_lock.py:FileLock._holder": OWN_FOLDER,
    "five/local/run_origin.py:RunOrigin.load": OWN_FOLDER,
    "five/packed_agents/training_facts.py:_progress": OWN_FOLDER,
    "five/reports/html_page.py:rebuild_page": OWN_FOLDER,
    "five/reports/tensorboard.py:TensorBoardWriter._read": OWN_FOLDER,
    "five/local/rest_client.py:ControllerClient.follow": "reads the user's own controller",
    "five/services/controller/autoscaler/kubernetes_api.py:_reason": "reads the cluster's API server",
    "five/services/rollout/environment.py:RemoteEnvironment.capture": "an error ends the broadcast, not the rollout",
    "five/services/controller/console/sessions.py:Sessions._store.change": "reads an index of the controller's own",
    "rapid/rpc/callers.py:with_secrets": "reads a file that this program has written",
    "rapid/store/checkpoint_index.py:CheckpointIndex.signing_key": "reads a key that only optimizers may read",
    "five/real_client/policy_player.py:PolicyPlayer.orders": "counts a frame that protobuf refuses",
    "rapid/store/rows.py:decode_row": INNER,
    "five/clients/wire.py:decode": INNER,
    "five/clients/wire.py:decode_packed": INNER,
    "rapid/store/fencing.py:_Lease.of": INNER,
    "five/services/controller/http/idempotency.py:_StoredRow.of": INNER,
    "rapid/store/backup_file.py:write": OWN_OUTPUT,
    "five/benchmarks/dotaservice.py:_alone": OWN_OUTPUT,
    "five/services/dotaservice/lockstep_game.py:LockstepGame._seen": OWN_OUTPUT,
}


def _messages(descriptor: Descriptor, seen: set[str]) -> None:
    if descriptor.full_name not in seen:
        seen.add(descriptor.full_name)
        for field in descriptor.fields:
            if field.message_type is not None:
                _messages(field.message_type, seen)


def test_every_message_has_a_target() -> None:
    pool = env_pb2.DESCRIPTOR.pool
    covered: set[str] = set()
    for target in all_targets().values():
        for name in target.messages:
            _messages(pool.FindMessageTypeByName(name), covered)
    defined = {d.full_name for module in PROTOS for d in module.DESCRIPTOR.message_types_by_name.values()}
    assert len(defined) > 40 and defined <= covered


def test_every_decoder_has_a_target_or_a_reason() -> None:
    covered = {name for target in all_targets().values() for name in target.decoders}
    found = find_decoders()
    missing = found.keys() - covered - TRUSTED.keys() - set(_inner(found))
    assert not missing, f"give these decoders a target in tests/fuzz, or a reason in TRUSTED: {sorted(missing)}"
    stale = (covered | TRUSTED.keys()) - found.keys()
    assert not stale, f"these functions decode nothing: {sorted(stale)}"


def _inner(found: dict[str, set[str]]) -> Iterator[str]:
    """Yield functions that only call a decoder of this project."""
    own = {"from_json", "from_yaml", "parse_header", "read_header", "decode_bytes", "parse_yaml", "decode_row",
           "read_json"}
    yield from (name for name, calls in found.items() if calls <= own)


def test_stored_inputs_are_small() -> None:
    files = [path for path in (ROOT / "tests/fuzz/seeds").rglob("*") if path.is_file()]
    assert files and len(files) <= 200 and sum(path.stat().st_size for path in files) <= 300_000
    assert {path.parent.name for path in files} <= all_targets().keys()
