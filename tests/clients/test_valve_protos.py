"""The schema of Dota 2's world states has the numbers and types that clients of dotaservice read."""

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from five.protos.valve import bot_world_state_pb2, dotaservice_pb2, dotaservice_pb2_grpc
from five.protos.valve.bot_world_state_pb2 import CMsgBotWorldState
from tests.dota.recorded_states import NAMES, frames, recording

TYPES = {"float": FieldDescriptor.TYPE_FLOAT, "int32": FieldDescriptor.TYPE_INT32,
         "uint32": FieldDescriptor.TYPE_UINT32, "bool": FieldDescriptor.TYPE_BOOL,
         "string": FieldDescriptor.TYPE_STRING, "enum": FieldDescriptor.TYPE_ENUM,
         "message": FieldDescriptor.TYPE_MESSAGE}
# The fields that dotaclient 8615b90 (policy.py, agent.py) reads: message -> name, number, type.
READ = {
    "Vector": "x 1 float, y 2 float, z 3 float",
    "Player": "player_id 1 int32, kills 5 uint32, deaths 6 uint32, team_id 8 uint32",
    "Ability": "slot 3 uint32, level 6 uint32, cooldown_remaining 12 float, is_activated 20 bool, "
               "is_in_ability_phase 22 bool, is_channeling 23 bool, is_fully_castable 25 bool",
    "TrackingProjectile": "caster_handle 1 uint32, is_attack 8 bool",
    "Unit": "handle 1 uint32, unit_type 2 enum, name 3 string, team_id 4 uint32, level 5 uint32, location 6 message, "
            "is_alive 7 bool, player_id 8 int32, facing 11 int32, health 20 int32, health_max 21 int32, mana 25 int32, "
            "mana_max 26 int32, anim_activity 35 int32, attack_range 44 int32, attack_target_handle 49 uint32, "
            "is_attack_immune 70 bool, is_invulnerable 78 bool, abilities 90 message, "
            "incoming_tracking_projectiles 93 message, xp_needed_to_level 120 uint32, last_hits 124 uint32, "
            "denies 125 uint32",
    "": "dota_time 3 float, players 10 message, units 11 message",
}


@pytest.mark.parametrize("name", READ)
def test_fields_of_dotaclient_have_their_numbers(name: str) -> None:
    message: Descriptor = CMsgBotWorldState.DESCRIPTOR
    if name:
        message = message.nested_types_by_name[name]
    for field, number, kind in (entry.split() for entry in READ[name].split(", ")):
        declared = message.fields_by_name[field]
        assert (declared.number, declared.type) == (int(number), TYPES[kind]), field


def messages(message: Descriptor) -> list[Descriptor]:
    return [message, *(inner for nested in message.nested_types for inner in messages(nested))]


def test_no_field_is_required() -> None:
    for file in (bot_world_state_pb2, dotaservice_pb2):
        for top in file.DESCRIPTOR.message_types_by_name.values():
            assert not [f.full_name for m in messages(top) for f in m.fields if f.is_required]


def test_methods_have_no_package() -> None:
    service = dotaservice_pb2.DESCRIPTOR.services_by_name["DotaService"]
    assert service.full_name == "DotaService"
    assert [method.name for method in service.methods] == ["reset", "observe", "act"]
    assert hasattr(dotaservice_pb2_grpc, "DotaServiceStub")


def test_actions_of_dotaclient_parse() -> None:
    """The bytes of `move directly to (275, 0)` of player 0, as dotaservice 0.3.9's generated code writes them."""
    actions = CMsgBotWorldState.Actions.FromString(bytes.fromhex(
        "0d 00 00 48 42 12 18 08 3e 10 00 e2 09 11 12 0f 0d 00 80 89 43 15 00 00 00 00 1d 00 00 00 00"))
    assert actions.dota_time == 50
    (action,) = actions.actions
    assert action.actionType == CMsgBotWorldState.Action.DOTA_UNIT_ORDER_MOVE_DIRECTLY
    assert action.WhichOneof("ActionData") == "moveDirectly" and action.moveDirectly.location.x == 275


def test_newer_fields_are_kept() -> None:
    frame = CMsgBotWorldState(team_id=2).SerializeToString() + b"\xc0\x3e\x05"  # field 1000: 5
    state = CMsgBotWorldState.FromString(frame)
    assert state.team_id == 2 and state.SerializeToString() == frame


def of_2017() -> type[Message]:
    """Return the message with the one type that differs in the recordings: a hero's respawn time in whole seconds."""
    file = descriptor_pb2.FileDescriptorProto()
    bot_world_state_pb2.DESCRIPTOR.CopyToProto(file)
    (unit,) = (nested for nested in file.message_type[0].nested_type if nested.name == "Unit")
    (respawn,) = (field for field in unit.field if field.name == "respawn_time")
    respawn.type = descriptor_pb2.FieldDescriptorProto.TYPE_UINT32
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("CMsgBotWorldState"))


@pytest.mark.parametrize("name", NAMES)
def test_recorded_frames_have_no_unknown_field(name: str) -> None:
    path = recording(name)
    if path is None:
        pytest.skip("FIVE_RECORDINGS names no folder with the recording; see tests/dota/recorded_states.py")
    world_state, count = of_2017(), 0
    for frame in frames(path):
        state = world_state.FromString(frame)
        size = state.ByteSize()
        state.DiscardUnknownFields()
        assert state.ByteSize() == size > 0
        count += 1
    assert count == 5086
