"""Where an operation puts what it makes, beside the run's own, until it is committed or removed."""


def folder_of(run: str, operation: str) -> str:
    """Prefix of the names of an operation's blobs."""
    return f"{run}/operations/{operation}/"


def checkpoint_of(run: str, operation: str) -> str:
    """Name of the checkpoint that an operation made."""
    return f"{folder_of(run, operation)}checkpoint"


def kept_folder(run: str) -> str:
    """Prefix of the names of checkpoints that stay when newer ones come: those from before an operation."""
    return f"{run}/kept/"


def kept_of(run: str, version: int, operation: str) -> str:
    """Name under which the checkpoint of a version stays, for the operation that made it."""
    return f"{kept_folder(run)}{version:012d}.{operation}"


def kept_version(name: str) -> int:
    """The version of a checkpoint by its ``kept_of`` name."""
    return int(name.rpartition("/")[2].partition(".")[0])


def reason_of(operation: str) -> str:
    """Why the version before an operation is kept permanently."""
    return f"the version before operation {operation}"


def recording_of(run: str, operation: str) -> str:
    """Name of the recorded samples that an operation's check was made on."""
    return f"{run}/recordings/{operation}"
