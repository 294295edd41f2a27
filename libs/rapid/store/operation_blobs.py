"""Names of an operation's blobs until it is committed or removed."""


def operation_folder(run: str, operation: str) -> str:
    """Return the prefix of an operation's blob names."""
    return f"{run}/operations/{operation}/"


def operation_checkpoint(run: str, operation: str) -> str:
    """Return the name of the checkpoint that an operation made."""
    return f"{operation_folder(run, operation)}checkpoint"


def preserved_folder(run: str) -> str:
    """Return the prefix of checkpoints preserved from before operations; newer checkpoints do not replace them."""
    return f"{run}/kept/"


def preserved_checkpoint(run: str, version: int, operation: str) -> str:
    """Return the name under which an operation preserves the checkpoint of a version."""
    return f"{preserved_folder(run)}{version:012d}.{operation}"


def preserved_version(name: str) -> int:
    """Return the version in the name of a preserved checkpoint; -1 for any other name."""
    version = name.rpartition("/")[2].partition(".")[0]
    return int(version) if len(version) == 12 and version.isascii() and version.isdigit() else -1


def pin_reason(operation: str) -> str:
    """Return why the version before an operation is pinned."""
    return f"the version before operation {operation}"


def recording_name(run: str, operation: str) -> str:
    """Return the name of the recorded samples that an operation's check used."""
    return f"{run}/recordings/{operation}"
