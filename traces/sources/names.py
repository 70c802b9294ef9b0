"""The names by which source formats are chosen; light enough for `--help`."""

from enum import StrEnum


class FormatName(StrEnum):
    """How a raw stream is written."""

    AUTO = "auto"
    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    PARQUET = "parquet"
    ORC = "orc"
    AVRO = "avro"
    CLF = "clf"
    KCAT = "kcat"
    TEXT = "text"
