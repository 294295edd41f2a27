"""Where an operation puts what it makes, beside the run's own, until it is committed or removed."""


def operation_folder(run: str, operation: str) -> str:
    """Prefix of the names of an operation's blobs."""
    return f"{run}/operations/{operation}/"


def operation_checkpoint(run: str, operation: str) -> str:
    """Name of the checkpoint that an operation made."""
    return f"{operation_folder(run, operation)}checkpoint"


def preserved_folder(run: str) -> str:
    """Prefix of the names of checkpoints that stay when newer ones come: those from before an operation."""
    return f"{run}/kept/"


def preserved_checkpoint(run: str, version: int, operation: str) -> str:
    """Name under which the checkpoint of a version stays, for the operation that made it."""
    return f"{preserved_folder(run)}{version:012d}.{operation}"


def preserved_version(name: str) -> int:
    """The version of a checkpoint by its ``preserved_checkpoint`` name."""
    return int(name.rpartition("/")[2].partition(".")[0])


def pin_reason(operation: str) -> str:
    """Why the version before an operation is kept permanently."""
    return f"the version before operation {operation}"


def recording_name(run: str, operation: str) -> str:
    """Name of the recorded samples that an operation's check was made on."""
    return f"{run}/recordings/{operation}"
