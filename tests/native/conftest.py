"""Tests of the agent's native code, which also run on a build with sanitizers (`make test-asan`)."""

from tests.dota.other_core import use_other_core

if other := use_other_core():
    from five.native import _native

    assert _native.__file__.startswith(other), f"the tests would use {_native.__file__}, not the build in {other}"
