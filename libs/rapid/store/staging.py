"""Where an operation puts what it makes, beside the run's own, until it is committed or removed."""


def folder_of(run: str, operation: str) -> str:
    """Prefix of the names of an operation's blobs."""
    return f"{run}/operations/{operation}/"


def checkpoint_of(run: str, operation: str) -> str:
    """Name of the checkpoint that an operation made."""
    return f"{folder_of(run, operation)}checkpoint"


def reason_of(operation: str) -> str:
    """Why the version before an operation is kept for ever."""
    return f"the version before operation {operation}"


def recording_of(run: str, operation: str) -> str:
    """Name of the recorded samples that an operation's check was made on."""
    return f"{run}/recordings/{operation}"
