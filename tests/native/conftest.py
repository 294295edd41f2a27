"""Tests of the agent's native code, which also run on a build with sanitizers (`make test-asan`)."""

from tests.dota.other_core import use_other_core

use_other_core()
