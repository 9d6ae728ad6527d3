"""``python -m tidemark.embedded.services.airflow_command ARGS…``: Airflow's command, for this home."""

import os
import sys

from tidemark.embedded.home import make_home
from tidemark.embedded.services.airflow import write_secrets
from tidemark.embedded.services.airflow_environment import airflow_environment
from tidemark.embedded.state import State
from tidemark.errors import TidemarkError
from tidemark.settings import Settings


def main() -> None:
    """Replace this process by Airflow's command, in the home's environment."""
    try:
        settings = Settings.read()
        make_home(settings)
        write_secrets(settings)
        environ = {**os.environ, **airflow_environment(settings, State.read(settings))}
    except TidemarkError as error:
        sys.exit(str(error))
    os.execve(sys.executable, [sys.executable, "-m", "airflow", *sys.argv[1:]], environ)


if __name__ == "__main__":
    main()
