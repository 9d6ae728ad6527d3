"""Put the administrator's password where Airflow's SimpleAuthManager reads it; other users keep theirs."""

import json
import os
from pathlib import Path


def write(path: Path, user: str, password: str) -> None:
    """Set one user's password in the file, in one step and readable by its owner only."""
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
