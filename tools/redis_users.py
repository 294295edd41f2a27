"""``python -m tools.redis_users`` writes charts/files/users-state.acl and users-params.acl: the users of Redis as
compose and the chart fill them in (rapid.store.acl)."""

from pathlib import Path

from rapid.store import acl
from rapid.store.connection import Role

FOLDER = Path(__file__).resolve().parents[1] / "charts" / "files"


def path_of(role: Role) -> Path:
    """Where a role's file lies."""
    return FOLDER / f"users-{role}.acl"


def main() -> None:
    for role in acl.ROLES:
        path_of(role).write_text(acl.template(role))


if __name__ == "__main__":
    main()
