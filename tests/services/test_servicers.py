"""Each gRPC servicer implements exactly the methods of its service: a method by another name is never called."""

from types import ModuleType

import pytest

from five.protos.v1 import env_pb2, evaluator_pb2, inference_pb2, opponents_pb2, play_pb2
from five.services.dota_env.service import EnvService
from five.services.evaluator.service import EvaluatorService
from five.services.inference.service import InferenceService
from five.services.opponents.service import OpponentService
from five.services.play.service import PlayService

SERVICERS = [(EnvService, env_pb2), (EvaluatorService, evaluator_pb2), (InferenceService, inference_pb2),
             (OpponentService, opponents_pb2), (PlayService, play_pb2)]


@pytest.mark.parametrize(("servicer", "module"), SERVICERS)
def test_servicer_implements_every_method_of_its_service(servicer: type, module: ModuleType) -> None:
    (service,) = module.DESCRIPTOR.services_by_name.values()
    assert {name for name in vars(servicer) if name[:1].isupper()} == set(service.methods_by_name)
