"""Installs test faults in the optimizer process. Python imports this module at start when it is on PYTHONPATH."""

import os
import sys
from pathlib import Path

FAULTS = os.environ.get("FIVE_TEST_OPTIMIZER_FAULTS")
if FAULTS and "five.services.optimizer" in sys.orig_argv:
    from tests.e2e.optimizer_faults import install

    install(Path(FAULTS))
