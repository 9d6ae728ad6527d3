"""``tidemark oplog status``: what an agent says of itself. Exit code 1 unless it says that it is OK."""

from typing import Any

import typer

from tidemark.cli.oplog.arguments import Target, TokenFile, agent_url, read_token
from tidemark.cli.options import Json, print_json

SECONDS = 10.0


def status(agent: Target, token_file: TokenFile = None, as_json: Json = False) -> None:
    """Show the figures of an agent, and whether it is well."""
    found = read_status(agent_url(agent), read_token(token_file))
    if as_json:
        print_json(found)
    else:
        for name, value in found.items():
            typer.echo(f"{name:<26} {_shown(value)}")
    raise typer.Exit(0 if found.get("status") == "OK" else 1)


def read_status(url: str, token: str | None) -> dict[str, Any]:
    """The figures of the agent at this address. Raises ``AgentSilent``."""
    import httpx

    from tidemark.oplog.agent.errors import AgentSilent

    headers = {"authorization": f"Bearer {token}"} if token else {}
    try:
        answer = httpx.get(f"{url.rstrip('/')}/status", headers=headers, timeout=SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise AgentSilent(url, f"{type(error).__name__}: {error}") from None
    try:
        found = answer.json()
    except ValueError:
        found = None
    if answer.status_code != 200 or not isinstance(found, dict):
        reason = found.get("error") if isinstance(found, dict) else None
        raise AgentSilent(url, f"{answer.status_code}: {reason or 'not an answer of an agent'}")
    return found


def _shown(value: Any) -> str:
    match value:
        case None:
            return "–"
        case dict():
            return ", ".join(f"{key}: {one}" for key, one in value.items()) or "–"
        case list():
            return "; ".join(map(str, value)) or "–"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
    return str(value)
