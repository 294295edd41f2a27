"""Generator of charts/files/users-state.acl and users-params.acl, the Redis users that compose and the chart fill in.

    python -m tools.redis_users
"""

from pathlib import Path

from rapid.store import acl
from rapid.store.connection import Role

FOLDER = Path(__file__).resolve().parents[1] / "charts" / "files"


def path_of(role: Role) -> Path:
    """Return the path of a role's file."""
    return FOLDER / f"users-{role}.acl"


def main() -> None:
    for role in acl.ROLES:
        path_of(role).write_text(acl.template(role), encoding="utf-8")


if __name__ == "__main__":
    main()
