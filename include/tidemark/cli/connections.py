"""Connections for the command line, from Airflow's environment variables, the embedded services or Airflow's
database, in this order.
"""

import os
from typing import Any

from tidemark.connections import BadConnection, connection_fields, read_environment_connection
from tidemark.embedded.home import MARKER
from tidemark.embedded.services.airflow_environment import embedded_connections
from tidemark.embedded.state import State
from tidemark.settings import Settings


def look_up(name: str) -> dict[str, Any]:
    """The fields of a connection, as ``tidemark.connections`` reads them. Raises ``BadConnection``."""
    settings = Settings.read()
    if found := read_environment_connection(name, os.environ):
        return found
    if (settings.home / MARKER).exists():
        ours = read_environment_connection(name, embedded_connections(settings, State.read(settings)))
        if ours:
            return ours
    if os.environ.get("AIRFLOW_HOME"):
        return _from_airflow(name)
    raise BadConnection(
        name,
        f"is not known here. Set AIRFLOW_CONN_{name.upper()}, or start the embedded services with: "
        "tidemark services up",
    )


def _from_airflow(name: str) -> dict[str, Any]:
    """A connection of Airflow's database; slow, because Airflow is imported."""
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowNotFoundException

    try:
        connection = Connection.get(name)
    except AirflowNotFoundException:
        raise BadConnection(name, "is not known to Airflow. Add it there (Admin, Connections).") from None
    return connection_fields(connection)
