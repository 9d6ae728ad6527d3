"""The options of the data source ``cassandra``, checked when it is opened.

Names are those of the Spark Cassandra connector where they fit. Spark hands options over in lower case, so
case does not matter. Unknown options are refused. A message never repeats a value, which may be a secret.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveInt,
    SecretStr,
    ValidationError,
    model_validator,
)

from tidemark.cassandra.bulk.statements import Using
from tidemark.cassandra.driver import ConsistencyLevel, Session
from tidemark.cassandra.table import Table, read_table
from tidemark.connections import CassandraConnection
from tidemark.errors import did_you_mean, with_fields
from tidemark.pipeline.journal import Consistency
from tidemark.spark.source.errors import DataSourceError

PREFIX = "spark.cassandra."
CONNECTION = ("connection.", "auth.")
"""The beginnings, after the prefix, of options about the connection."""

OTHER_NAMES = {PREFIX + "output.ttl": "ttl", PREFIX + "output.timestamp": "writetime"}
"""The Spark Cassandra connector's names of our options."""


@with_fields
class OptionsRefused(DataSourceError):
    """Options that cannot be meant, all of them at once."""

    problems: tuple[str, ...]

    def __str__(self) -> str:
        return f"Data source cassandra: {' '.join(self.problems)} Nothing was read or written."


def _names(value: Any) -> Any:
    """Names separated by commas."""
    return (
        tuple(name for part in value.split(",") if (name := part.strip()))
        if isinstance(value, str)
        else value
    )


def _number_or_name(value: Any) -> Any:
    """One number for all rows, or the name of the column that has each row's own."""
    return int(value) if isinstance(value, str) and value.strip().isdecimal() else value


def _upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _spark(name: str, default: Any) -> Any:
    return Field(default, alias=PREFIX + name.lower(), title=PREFIX + name)


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
ForRows = Annotated[int | str, BeforeValidator(_number_or_name)]
Level = Annotated[Consistency, BeforeValidator(_upper)]


class RowOperation(StrEnum):
    """What a ``save`` does with each row."""

    WRITE = "write"
    DELETE = "delete"
    """Delete the row with this key."""
    DELETE_RANGES = "delete_ranges"
    """Delete all rows whose key begins so: of a whole partition, or of a slice of one."""


class CassandraOptions(BaseModel):
    """The options of one ``load`` or ``save``."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    keyspace: str = Field(min_length=1)
    table: str = Field(min_length=1)
    columns: Names | None = None
    ttl: ForRows | None = None
    writetime: ForRows | None = None
    ttl_of: Names = ()
    writetime_of: Names = ()
    operation: Annotated[RowOperation, BeforeValidator(_lower)] = RowOperation.WRITE
    checkpoint: str | None = Field(None, alias="checkpointlocation", title="checkpointLocation")
    """An option of streams that belongs to Spark."""

    hosts: Names = _spark("connection.host", ("127.0.0.1",))
    port: PositiveInt = _spark("connection.port", 9042)
    local_dc: str | None = _spark("connection.localDC", None)
    user: str | None = _spark("auth.username", None)
    password: SecretStr | None = _spark("auth.password", None)
    tls: bool = _spark("connection.ssl.enabled", False)
    ca_file: str | None = _spark("connection.ssl.trustStore.path", None)
    ca_type: str = _spark("connection.ssl.trustStore.type", "PEM")
    key_file: str | None = _spark("connection.ssl.keyStore.path", None)
    key_type: str = _spark("connection.ssl.keyStore.type", "PEM")

    splits: PositiveInt | None = _spark("input.split.count", None)
    split_megabytes: PositiveInt = _spark("input.split.sizeInMB", 512)
    fetch_rows: PositiveInt = _spark("input.fetch.sizeInRows", 5_000)
    reads_in_flight: PositiveInt = _spark("input.concurrent.reads", 4)
    read_consistency: Level = _spark("input.consistency.level", Consistency.LOCAL_QUORUM)

    write_consistency: Level = _spark("output.consistency.level", Consistency.LOCAL_QUORUM)
    batch_rows: Annotated[int, Field(gt=0, le=65_535)] = _spark("output.batch.size.rows", 100)
    batch_bytes: PositiveInt = _spark("output.batch.size.bytes", 30_000)
    writes_in_flight: PositiveInt = _spark("output.concurrent.writes", 16)
    ignore_nulls: bool = _spark("output.ignoreNulls", True)

    @classmethod
    def read(cls, given: Mapping[str, str], session: Mapping[str, str] | None = None) -> Self:
        """The options given to a ``load`` or ``save``, then the Spark session's, then defaults."""
        known = {field.alias or name for name, field in cls.model_fields.items()}
        usual = {name: value for name, value in _by_own_names(session or {}).items() if name in known}
        try:
            return cls.model_validate(usual | _by_own_names(given))
        except ValidationError as error:
            raise OptionsRefused(tuple(map(_problem, error.errors()))) from None

    @model_validator(mode="after")
    def _tls_is_whole(self) -> Self:
        if self.tls and not self.ca_file:
            raise ValueError("`spark.cassandra.connection.ssl.enabled` needs `…ssl.trustStore.path`.")
        for path, kind in ((self.ca_file, self.ca_type), (self.key_file, self.key_type)):
            if path and (kind.upper() != "PEM" or path.lower().endswith((".jks", ".p12", ".pfx"))):
                raise ValueError(
                    f"`{path}` is no PEM file, which is what Python reads. Export it, for example: "
                    "keytool -exportcert -rfc -keystore STORE -alias NAME -file ca.pem."
                )
        return self

    def described(self, session: Session) -> Table:
        """The table, as it is now."""
        return read_table(session, self.keyspace, self.table)

    @property
    def connection(self) -> CassandraConnection:
        """The connection that these options describe."""
        return CassandraConnection(
            hosts=self.hosts,
            port=self.port,
            user=self.user,
            password=self.password,
            ca_file=self.ca_file if self.tls else None,
            certificate_file=self.key_file if self.tls else None,
            key_file=self.key_file if self.tls else None,
            local_dc=self.local_dc,
        )

    @property
    def using(self) -> dict[Using, int | str]:
        """The write time and the time to live of rows, where they are set."""
        given = {Using.TIMESTAMP: self.writetime, Using.TTL: self.ttl}
        return {using: value for using, value in given.items() if value is not None}

    @property
    def read_level(self) -> int:
        """The driver's number of the consistency of reads."""
        return int(ConsistencyLevel.name_to_value[self.read_consistency.value])

    @property
    def write_level(self) -> int:
        """The driver's number of the consistency of writes."""
        return int(ConsistencyLevel.name_to_value[self.write_consistency.value])


def _by_own_names(options: Mapping[str, str]) -> dict[str, str]:
    lowered = {name.lower(): value for name, value in options.items()}
    return {OTHER_NAMES.get(name, name): value for name, value in lowered.items()}


def names_connection(given: Mapping[str, str]) -> bool:
    """Whether options describe a connection, which then replaces any other as a whole."""
    return any(name.lower().startswith(tuple(PREFIX + part for part in CONNECTION)) for name in given)


def _problem(error: Any) -> str:
    name, kind = ".".join(map(str, error["loc"][:1])), error["type"]
    spelled = {field.alias or own: field.title or own for own, field in CassandraOptions.model_fields.items()}
    if kind == "extra_forbidden":
        if name == "path":
            return "`load` and `save` take no path here: give the options `keyspace` and `table`."
        known = f"Options: {', '.join(sorted(spelled.values()))}."
        meant = did_you_mean(name, spelled, "")
        hint = f"Did you mean `{spelled[meant.split('`')[1]]}`?" if meant else known
        return f"There is no option `{name}`. {hint}"
    if kind == "missing":
        return f"The option `{name}` is missing."
    if kind == "enum":
        choices: type[StrEnum] = RowOperation if name == "operation" else Consistency
        return f"`{spelled[name]}` is none of {', '.join(choice.value for choice in choices)}."
    if not name:
        return str(error["ctx"]["error"])
    return f"`{spelled[name]}` cannot be that: {error['msg']}."
