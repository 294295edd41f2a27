"""Installs test faults in the optimizer process. Python imports this module at start when it is on PYTHONPATH."""

import os
import sys
from pathlib import Path

if "five.services.optimizer" in sys.orig_argv:
    from tests.e2e.optimizer_faults import VARIABLE, install

    install(Path(os.environ[VARIABLE]))
