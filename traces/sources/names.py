"""Names of source and key formats, light enough for `--help`."""

from enum import StrEnum


class FormatName(StrEnum):
    """Format of a source."""

    AUTO = "auto"
    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    JSON = "json"
    DEBEZIUM = "debezium"
    OTLP = "otlp"
    PARQUET = "parquet"
    ORC = "orc"
    AVRO = "avro"
    CLF = "clf"
    KCAT = "kcat"
    CONSOLE = "console"
    TEXT = "text"


class KeyFormat(StrEnum):
    """How the keys of a topic were written."""

    AUTO = "auto"
    TEXT = "text"
    BYTES = "bytes"
    INT = "int"
    CONFLUENT = "confluent"
