"""Process of one rehearsal that was requested over REST, started by `five.rehearsal.runner`.

    python -m five.rehearsal FOLDER ID
"""

import sys
from pathlib import Path

from five.agent.surgery import Plan
from five.local.run_folder import RunFolder
from five.rehearsal.progress import RehearsalStopped
from five.rehearsal.rehearsal import run_rehearsal, run_state
from five.services.controller.surgery.rehearsals import Rehearsals


def main(path: str, identity: str) -> int:
    """Run the rehearsal unless it is over or cancelled. Return the exit status. The run's state holds the error."""
    folder = RunFolder(Path(path))
    rehearsals = Rehearsals(run_state(folder))
    rehearsal = rehearsals.get(identity)
    if rehearsal is None or rehearsal.is_over or rehearsal.cancel:
        return 0
    if not rehearsals.hold(identity):
        print("another rehearsal of this run is in progress", flush=True)
        return 1
    try:
        plan = Plan.from_yaml(rehearsal.plan)
        run_rehearsal(folder, plan, rehearsal, rehearsals, lambda text: print(text, flush=True))
    except RehearsalStopped as stopped:
        print(stopped, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
