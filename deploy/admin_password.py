"""Writes the admin password to the file of Airflow's SimpleAuthManager; other users keep theirs."""

import json
import os
from pathlib import Path


def write(path: Path, user: str, password: str) -> None:
    """Set one user's password in the file, atomically; the file has mode 0600."""
    passwords = json.loads(path.read_text() or "{}") if path.exists() else {}
    draft = path.with_suffix(".new")
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(passwords | {user: password}) + "\n")
    draft.replace(path)


if __name__ == "__main__":
    write(
        Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"]),
        user="admin",
        password=os.environ["AIRFLOW_ADMIN_PASSWORD"],
    )
