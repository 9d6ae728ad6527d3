"""``tidemark services``: Kafka, Cassandra, Airflow and Spark on this machine."""

import json
from typing import Annotated

import typer
from rich.console import Console

from tidemark.cli.options import Json, print_json
from tidemark.cli.output.services import services_table
from tidemark.embedded.display import display
from tidemark.embedded.home import check_home, remove_home
from tidemark.embedded.jars.class_archive import ensure_class_archive
from tidemark.embedded.jars.fetch import ensure_jars
from tidemark.embedded.jars.lock_file import Conf
from tidemark.embedded.lifecycle import down as stop_services
from tidemark.embedded.lifecycle import up as start_services
from tidemark.embedded.logs import checked_services, read_log
from tidemark.embedded.services import cassandra, spark_connect
from tidemark.embedded.services.airflow import passwords_file
from tidemark.embedded.state import SparkMode
from tidemark.embedded.status import is_healthy, service_status
from tidemark.settings import Settings

app = typer.Typer(help="Kafka, Cassandra, Airflow and Spark on this machine.", no_args_is_help=True)

Only = Annotated[str, typer.Option(help="Only these, separated by commas, e.g. kafka,cassandra.")]


@app.command()
def up(
    spark: Annotated[
        SparkMode | None,
        typer.Option(
            help="Where Spark runs: in a server that stays up, inside each application, or in a cluster of "
            "three processes. Kept until another mode is given; at first connect."
        ),
    ] = None,
    only: Only = "",
    cassandra_heap: Annotated[
        str, typer.Option(envvar="TIDEMARK_CASSANDRA_HEAP", help="Memory for Cassandra, e.g. 1g or 2g.")
    ] = cassandra.HEAP,
    spark_heap: Annotated[
        str, typer.Option(envvar="TIDEMARK_SPARK_HEAP", help="Memory for Spark's Connect server, e.g. 2g.")
    ] = spark_connect.HEAP,
    as_json: Json = False,
) -> None:
    """Start services that do not run, and wait until all answer."""
    settings = Settings.read()
    with display(Console(stderr=True)) as show:
        running = start_services(
            settings,
            checked_services(only),
            spark,
            cassandra_heap=cassandra_heap,
            spark_heap=spark_heap,
            report=show.service,
            fetching=show.fetching,
        )
    passwords = passwords_file(settings) if "airflow" in running.addresses else None
    if as_json:
        print_json(
            {"home": str(settings.home), "addresses": running.addresses, "passwords": str(passwords or "")}
        )
        return
    for name, address in running.addresses.items():
        print(f"{name:<10} {address}")
    if passwords:
        print(f"User and password for Airflow: {passwords}")


@app.command()
def down(only: Only = "", as_json: Json = False) -> None:
    """Stop all services of this home. Data stays."""
    with display(Console(stderr=True)) as show:
        ended = stop_services(Settings.read(), checked_services(only), show.service)
    if as_json:
        print_json({"processes_stopped": ended})
    else:
        print(
            "Nothing was running." if not ended else f"Stopped {ended} process{'' if ended == 1 else 'es'}."
        )


@app.command()
def status(as_json: Json = False) -> None:
    """Show what runs, where and since when. Exit code 0 only if everything that was started is healthy."""
    settings = Settings.read()
    lines = service_status(settings)
    if as_json:
        print_json({"home": str(settings.home), "services": [line.as_dict() for line in lines]})
    else:
        Console().print(services_table(lines))
    raise typer.Exit(0 if is_healthy(lines) else 1)


@app.command()
def logs(
    service: Annotated[str, typer.Argument(help="kafka, cassandra, airflow-scheduler, …")],
    lines: Annotated[int, typer.Option("-n", "--lines", min=1, help="How many lines.")] = 50,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Follow the log until Ctrl-C.")] = False,
    as_json: Json = False,
) -> None:
    """Show the last lines of a service's log."""
    try:
        for line in read_log(Settings.read(), service, lines, follow):
            print(json.dumps({"service": service, "line": line}) if as_json else line, flush=follow)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


@app.command()
def fetch(
    only: Annotated[Conf | None, typer.Option(help="Only these jars.")] = None,
    verify: Annotated[bool, typer.Option(help="Check the digest of every jar, not only its size.")] = False,
    as_json: Json = False,
) -> None:
    """Fetch the jars of the services ahead of `up`."""
    with display(Console(stderr=True)) as show:
        jars = ensure_jars(Settings.read(), only, show.fetching, verify=verify)
    if as_json:
        print_json({"folder": str(jars.folder)})
    else:
        print(jars.folder)


@app.command()
def warm(as_json: Json = False) -> None:
    """Archive Spark's classes, which halves the start of every application. Takes a minute, once."""
    with Console(stderr=True).status("archiving Spark's classes"):
        archive = ensure_class_archive(Settings.read())
    if as_json:
        print_json({"archive": str(archive)})
    else:
        print(archive)


@app.command()
def clean(
    execute: Annotated[bool, typer.Option(help="Carry out the plan instead of only showing it.")] = False,
    as_json: Json = False,
) -> None:
    """Stop all services and remove all data of this home. The fetched jars stay."""
    settings = Settings.read()
    if not settings.home.exists():
        if as_json:
            print_json({"stop": [], "remove": None, "bytes": 0, "executed": False})
        else:
            print(f"{settings.home} does not exist: nothing to remove.")
        return
    check_home(settings)
    running = [line.program for line in service_status(settings) if line.status in ("running", "silent")]
    size = sum(path.lstat().st_size for path in settings.home.rglob("*") if not path.is_dir())
    if as_json:
        print_json({"stop": running, "remove": str(settings.home), "bytes": size, "executed": execute})
    else:
        print(f"Stop: {', '.join(running) or 'nothing runs'}\nRemove: {settings.home} ({size / 1e6:,.0f} MB)")
    if execute:
        stop_services(settings)
        remove_home(settings)
    elif not as_json:
        print("Nothing was changed. Add --execute to do it.")
