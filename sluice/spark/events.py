"""Journal events in Spark: lines of JSON as columns, with a reason for each line that is not a valid event.

Only Spark SQL expressions are used, so executors do not need this package.

An event with a missing field, or one of another type, is of an unsupported journal version. Unknown fields are ignored.
"""

from collections.abc import Iterable
from functools import reduce
from types import NoneType
from typing import get_args, get_origin

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from sluice.journal_events import KINDS, AnyEvent
from sluice.spark.journal_parquet import AS_JSON

EVENT = "event"
REASON = "reason"
_CORRUPT = "_corrupt_record"  # a line that is not JSON, or has a field of another type
# By default Spark accepts more than JSON.
_STRICT = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
_SQL_TYPES: dict[object, str] = {int: "bigint", str: "string", bool: "boolean"}
Kinds = Iterable[type[AnyEvent]]


def parsed(lines: DataFrame, value: Column, kinds: Kinds) -> DataFrame:
    """Return `lines` with the columns `event`, with fields of these kinds, and `reason`, null for a valid event."""
    wanted = list(kinds)
    columns = f"{sql_columns(wanted)}, {_CORRUPT} string"
    options = {"columnNameOfCorruptRecord": _CORRUPT, **_STRICT}
    with_event = lines.withColumn(EVENT, f.from_json(value, columns, options))
    return with_event.withColumn(REASON, _reason(value, wanted))


def lines(session: SparkSession, inputs: Iterable[str]) -> DataFrame:
    """Return one event per row as JSON, in `value`: lines of NDJSON files, and rows of Parquet exports."""
    return reduce(DataFrame.unionByName, (_lines(session, path) for path in inputs))


def _lines(session: SparkSession, path: str) -> DataFrame:
    if not path.endswith(".parquet"):
        return session.read.text(path).where(f.trim("value") != "")
    rows = session.read.parquet(path)
    as_json = [name for name in AS_JSON if name in rows.columns]
    text = f.to_json(f.struct(*(name for name in rows.columns if name not in as_json)), {"ignoreNullFields": "false"})
    parts: list[Column] = [f.expr("substring(line, 1, length(line) - 1)")]
    for name in as_json:
        # A column without any value has another type.
        parts += [f.lit(f',"{name}":'), f.coalesce(f.col(name).cast("string"), f.lit("{}"))]
    return rows.withColumn("line", text).select(f.concat(*parts, f.lit("}")).alias("value"))


def sql_columns(kinds: Kinds) -> str:
    columns = {"kind": "string"}
    for kind in kinds:
        for field in msgspec.structs.fields(kind):
            sql_type = _sql_type(field.type)
            assert columns.setdefault(field.name, sql_type) == sql_type, f"{field.name} differs between kinds"
    return ", ".join(f"`{name}` {sql_type}" for name, sql_type in columns.items())


def _sql_type(annotation: object) -> str:
    named = _SQL_TYPES.get(annotation)
    if named is not None:
        return named
    if get_origin(annotation) is dict:
        return "map<string, string>"
    if get_origin(annotation) is list:
        (item,) = get_args(annotation)
        return f"array<{_sql_type(item)}>"
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        fields = ", ".join(f"{each.name}: {_sql_type(each.type)}" for each in msgspec.structs.fields(annotation))
        return f"struct<{fields}>"
    (some,) = (each for each in get_args(annotation) if each is not NoneType)  # of a union with None
    return _sql_type(some)


def _reason(value: Column, kinds: list[type[AnyEvent]]) -> Column:
    event = f.col(EVENT)
    reason = (
        f.when(value.isNull() | (f.trim(value) == ""), "no value")
        .when(event[_CORRUPT].isNotNull(), _why_corrupt(value))
        .when(event["kind"].isNull(), "not a journal event: no kind")
        .when(~event["kind"].isin(*KINDS), f.concat(f.lit("not a journal event: unknown kind "), event["kind"]))
    )
    for kind in kinds:
        lacks = f.concat_ws(", ", *(f.when(event[name].isNull(), name) for name in _never_null(kind)))
        tag = str(kind.__struct_config__.tag)
        reason = reason.when(
            (event["kind"] == tag) & (lacks != ""),
            f.concat(f.lit(f"{tag} event of another journal version: missing "), lacks),
        )
    return reason


def _why_corrupt(value: Column) -> Column:
    as_map = f.from_json(value, "map<string, string>", _STRICT)
    return (
        f.when(~f.ltrim(value).startswith("{"), "not a journal event: expected a JSON object")
        .when(as_map.isNull(), "not JSON")
        .otherwise("event of another journal version: a field has another type")
    )


def _never_null(kind: type[AnyEvent]) -> list[str]:
    # Fields with a default are newer than the first journals.
    return [
        field.name for field in msgspec.structs.fields(kind) if field.required and NoneType not in get_args(field.type)
    ]
