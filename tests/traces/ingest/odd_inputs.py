"""Malformed and odd inputs, each with what an ingest makes of it: rows kept, rows refused by reason, or an error."""

import base64
import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from collections.abc import Mapping as Dict
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.parquet.encryption import CryptoFactory, EncryptionConfiguration, KmsClient, KmsConnectionConfig

from adapt.traces.ingest.mapping import Mapping
from adapt.traces.sources.names import FormatName
from adapt.traces.sources.reading.blocks import PATH
from adapt.traces.sources.sniff import ReadOptions

BOM = b"\xef\xbb\xbf"
MEBI = 1 << 20

NOT_UTF8 = "not UTF-8 text"
NO_TIME = "time is missing"
BAD_TIME = "time cannot be read"
BAD_COST = "cost is not a number"
NEGATIVE = "cost is negative"
NOT_FINITE = "cost is not finite"
BAD_BYTES = "bytes is not a number"
OPEN_QUOTE = "a quote is never closed"
NO_OBJECT = "not a JSON object"
HALF = "half of a surrogate pair in a field"
NO_LOG = "not a line of the Common or Combined Log Format"
NO_MATCH = "does not match the pattern"


@dataclass(frozen=True, slots=True)
class Odd:
    """A file, and what becomes of its rows.

    Attributes:
        content: Its bytes.
        kept: How many rows the trace has of it.
        refused: How many are refused, by reason.
        keys: The keys kept, in time order, where they tell something.
    """

    content: bytes
    kept: int = 0
    refused: Dict[str, int] = field(default_factory=dict)
    keys: tuple[object, ...] | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Files that one ingest reads, all alike in columns and options; streams are their names."""

    mapping: Mapping
    reading: ReadOptions
    files: Dict[str, Odd]
    time_zone: str = "UTC"


def lines(*rows: str | bytes, end: bytes = b"\n") -> bytes:
    """Rows with their line ends."""
    return b"".join((row.encode() if isinstance(row, str) else row) + end for row in rows)


HEAD = "ts,key,cost,bytes"
GOOD = "2015-05-17T10:00:00,ann,1,2"


def row(ts: str = "2015-05-17T10:00:00", key: str = "ann", cost: str = "1", size: str = "2") -> str:
    """One row of CSV."""
    return f"{ts},{key},{cost},{size}"


def times(*texts: str) -> bytes:
    """A CSV with these times."""
    return lines(HEAD, *(row(ts=text) for text in texts))


def costs(*texts: str) -> bytes:
    """A CSV with these costs."""
    return lines(HEAD, *(row(cost=text) for text in texts))


def sizes(*texts: str) -> bytes:
    """A CSV with these sizes."""
    return lines(HEAD, *(row(size=text) for text in texts))


def zipped(**members: bytes) -> bytes:
    """A zip archive of members by name, with a folder among them."""
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("folder")
        for name, content in members.items():
            archive.writestr(name, content)
    return kept.getvalue()


def zstd(content: bytes) -> bytes:
    """A zstd frame."""
    return bytes(pa.Codec("zstd").compress(content, asbytes=True))


def tarred(**members: bytes) -> bytes:
    """A tar archive of members by name."""
    kept = io.BytesIO()
    with tarfile.open(fileobj=kept, mode="w") as archive:
        for name, content in members.items():
            told = tarfile.TarInfo(name)
            told.size = len(content)
            archive.addfile(told, io.BytesIO(content))
    return kept.getvalue()


def checksum(content: bytes) -> bytes:
    """As a zip archive holds it."""
    return zlib.crc32(content).to_bytes(4, "little")


def put(folder: Path, **files: bytes) -> None:
    """Files by name."""
    for name, content in files.items():
        (folder / name).write_bytes(content)


def linked(folder: Path) -> None:
    """A file and a link to it."""
    put(folder, a=PLAIN)
    (folder / "b").symlink_to("a")


PLAIN = lines(HEAD, GOOD, GOOD)

CSV = {
    "plain": Odd(PLAIN, 2),
    "byte order mark": Odd(BOM + PLAIN, 2),
    "byte order mark amid the file": Odd(PLAIN + BOM + lines(GOOD), 2, {BAD_TIME: 1}),
    "CRLF": Odd(lines(HEAD, GOOD, GOOD, end=b"\r\n"), 2),
    "CR": Odd(lines(HEAD, GOOD, GOOD, end=b"\r"), 2),
    "line ends of three kinds": Odd(f"{HEAD}\n{GOOD}\r\n{GOOD}\r{GOOD}\n\r{GOOD}\r\r\n".encode(), 4),
    "no line end at the end": Odd(f"{HEAD}\n{GOOD}\n{GOOD}".encode(), 2),
    "blank lines": Odd(lines(HEAD, "", GOOD, "", "", GOOD, "", ""), 2),
    "lines of spaces": Odd(lines(HEAD, "   ", GOOD), 1, {"1 fields instead of 4": 1}),
    "header only": Odd(lines(HEAD)),
    "header without a line end": Odd(HEAD.encode()),
    "empty": Odd(b""),
    "header again, as after cat": Odd(PLAIN + PLAIN, 4, {BAD_TIME: 1}),
    "quoted header": Odd(lines('"ts","key","cost","bytes"', GOOD), 1),
    "Latin-1": Odd(lines(HEAD, GOOD, b"2015-05-17T10:00:00,Andr\xe9,1,2", GOOD), 2, {NOT_UTF8: 1}),
    "overlong UTF-8": Odd(lines(HEAD, b"2015-05-17T10:00:00,a\xc0\x80,1,2", GOOD), 1, {NOT_UTF8: 1}),
    "surrogates as UTF-8": Odd(lines(HEAD, b"2015-05-17T10:00:00,a\xed\xa0\x80,1,2", GOOD), 1, {NOT_UTF8: 1}),
    "a character cut by the end": Odd(lines(HEAD, GOOD) + b"2015-05-17T10:00:00,\xe2\x82", 1, {NOT_UTF8: 1}),
    "NUL in a key": Odd(lines(HEAD, b"2015-05-17T10:00:00,a\0b,1,2"), 1, keys=("a\0b",)),
    "NUL behind a number": Odd(lines(HEAD, b"2015-05-17T10:00:00,a,1\0,2"), 1),
    "a row of NUL, as after a crash": Odd(lines(HEAD, GOOD, b"\0" * 4096), 1, {"1 fields instead of 4": 1}),
    "end of file as DOS has it": Odd(PLAIN + b"\x1a", 2, {"1 fields instead of 4": 1}),
    "too many fields, and too few": Odd(
        lines(HEAD, GOOD + ",9", "2015-05-17,x", GOOD),
        1,
        {"5 fields instead of 4": 1, "2 fields instead of 4": 1},
    ),
    "a quote never closed": Odd(lines(HEAD, GOOD, row(key='"ann'), GOOD, GOOD), 3, {OPEN_QUOTE: 1}),
    "a quote never closed at the end": Odd(lines(HEAD, GOOD) + row(key='"ann').encode(), 1, {OPEN_QUOTE: 1}),
    "a quote inside a field": Odd(lines(HEAD, row(key='5"inch')), 1, keys=('5"inch',)),
    "text after a closing quote": Odd(lines(HEAD, row(key='"a"b')), 1, keys=("ab",)),
    "line ends inside quotes": Odd(lines(HEAD, row(key='"a\r\nb\rc\nd"')), 1, keys=("a\r\nb\rc\nd",)),
    "quotes inside quotes": Odd(lines(HEAD, row(key='"say ""a,b"""')), 1, keys=('say "a,b"',)),
    "line separators of Unicode": Odd(
        lines(HEAD, row(key="a\u2028b\x85c\x0bd\x0ce")), 1, keys=("a\u2028b\x85c\x0bd\x0ce",)
    ),
    "no key": Odd(lines(HEAD, row(key=""), row(key=" "), row(key='""')), 3, keys=("", " ", "")),
    "ключ 🗝 100%41+#?.csv": Odd(lines(HEAD, row(key="🗝")), 1, keys=("🗝",)),
    "a field of 10 MiB": Odd(lines(HEAD, GOOD, row(key="k" * 10 * MEBI), GOOD), 3),
    "a cost of 1 MiB": Odd(lines(HEAD, GOOD, row(cost="x" * MEBI), GOOD), 2, {BAD_COST: 1}),
    "1 MiB of line ends in quotes": Odd(lines(HEAD, row(key='"' + "\r\n" * (MEBI // 2) + '"'), GOOD), 2),
    "100,000 fields": Odd(lines(HEAD, GOOD, "," * 99_999), 1, {"100000 fields instead of 4": 1}),
    "years 1 and 9999": Odd(times("0001-01-01", "0001-01-01T00:00:00.000001Z", "9999-12-31T23:59:59.999999"), 3),
    "years 0 and 10000": Odd(times("0000-12-31", "10000-01-01", "-0001-01-01", "+12345-01-01"), 0, {BAD_TIME: 4}),
    "beyond the years by their zone": Odd(
        times("0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"), 0, {BAD_TIME: 2}
    ),
    "microseconds": Odd(
        times("2015-05-17T10:00:00.000002", "2015-05-17T10:00:00.000001", "2015-05-17T10:00:00.0000019"), 3
    ),
    "leap second": Odd(times("2016-12-31T23:59:60Z"), 0, {BAD_TIME: 1}),
    "hour 24": Odd(times("2015-05-17T24:00:00"), 0, {BAD_TIME: 1}),
    "dates that are none": Odd(
        times("2015-02-29", "2015-02-30", "2015-04-31", "2015-13-01", "2015-00-10", "2015-01-00"), 0, {BAD_TIME: 6}
    ),
    "29 February": Odd(times("2016-02-29", "2000-02-29", "1900-02-29"), 2, {BAD_TIME: 1}),
    "no time": Odd(times("", "  ", '""'), 0, {NO_TIME: 3}),
    "times of other kinds": Odd(times("10:05", "2015", "now", "epoch", "1431856800", "17.05.2015"), 0, {BAD_TIME: 6}),
    "negative costs": Odd(costs("-1", "-0.001", "-1e-300", "-0", "0"), 2, {NEGATIVE: 3}),
    "costs that are no numbers": Odd(
        costs("NaN", "nan", "inf", "-inf", "Infinity", "1e999", "-1e999"), 0, {NOT_FINITE: 7}
    ),
    "costs written oddly": Odd(costs("+5", "1e3", " 7 ", ".5", "5.", "1e-400", ""), 7),
    "costs that are words": Odd(
        costs("0x10", "1_000", '"1,000"', "1 000", "5ms", "five", "1e", "--1"), 0, {BAD_COST: 8}
    ),
    "numbers as programs write them": Odd(costs("5d", "5f", "5L", "1D", "1F", "0x1p3"), 0, {BAD_COST: 6}),
    "a cost too large for a double": Odd(costs("1.8e308"), 0, {NOT_FINITE: 1}),
    "bytes at the end of int64": Odd(
        sizes("9223372036854775807", "9223372036854775808", "1e30"), 1, {"bytes is too large": 2}
    ),
    "bytes below nothing": Odd(
        sizes("-1", "-9223372036854775808", "-9223372036854775809"), 0, {"bytes is negative": 3}
    ),
    "bytes with a fraction": Odd(sizes("2.7", "2e3", "", "-0.0"), 4),
    "bytes that are none": Odd(sizes("2k", '"1,024"', "NaN", "0b1"), 0, {BAD_BYTES: 3, "bytes is not finite": 1}),
    "gzip": Odd(gzip.compress(PLAIN), 2),
    "gzip of a byte order mark": Odd(gzip.compress(BOM + PLAIN), 2),
    "gzip in two members": Odd(gzip.compress(PLAIN) + gzip.compress(lines(GOOD)), 3),
    "gzip of nothing": Odd(gzip.compress(b"")),
    "gzip with zeros behind, as on tape": Odd(gzip.compress(PLAIN) + b"\0" * 512, 2),
    "bzip2.csv": Odd(bz2.compress(PLAIN), 2),
    "plain text.gz": Odd(PLAIN, 2),
    "xz": Odd(lzma.compress(PLAIN), 2),
    "zstd": Odd(zstd(PLAIN), 2),
    "zip": Odd(zipped(one=PLAIN), 2),
    "zip of two members and a folder": Odd(zipped(**{"a.csv": PLAIN, "folder/b.csv": PLAIN}), 4),
    "zip of absolute paths": Odd(zipped(**{"/etc/passwd": PLAIN, "../../outside": PLAIN}), 4),
    "zip of an empty member": Odd(zipped(empty=b"", full=PLAIN), 2),
}

TSV = {
    "plain": Odd(lines("ts\tkey", "2015-05-17\ta"), 1),
    "quotes": Odd(lines("ts\tkey", '2015-05-17\t"a\tb"'), 1, keys=("a\tb",)),
    "spaces for tabs": Odd(lines("ts\tkey", "2015-05-17  a"), 0, {"1 fields instead of 2": 1}),
    "a tab at the end": Odd(lines("ts\tkey", "2015-05-17\ta\t"), 0, {"3 fields instead of 2": 1}),
    "escapes of databases": Odd(lines("ts\tkey", "2015-05-17\t\\N", "\\N\ta"), 1, {BAD_TIME: 1}, ("\\N",)),
}

EPOCHS = {
    "negative": Odd(lines("-1,a", "-62135596800000000,b", "-62135596800000001,c"), 2, {BAD_TIME: 1}, ("b", "a")),
    "the ends of int64": Odd(
        lines("9223372036854775807,a", "-9223372036854775808,b", "9223372036854775808,c"), 0, {BAD_TIME: 3}
    ),
    "fractions": Odd(lines("1.4,a", "1.6,b", "1e3,c", " 5 ,d", "+7,e"), 5, keys=("a", "b", "d", "e", "c")),
    "no numbers": Odd(lines("NaN,a", "inf,b", "0x10,c", "1_0,d", "2015-05-17,e", ",f"), 0, {BAD_TIME: 5, NO_TIME: 1}),
    "forty digits": Odd(lines("1" * 40 + ",a", "0" * 40 + "7,b"), 1, {BAD_TIME: 1}, ("b",)),
}

OTHER_ZONE = {
    "a gap and an hour that comes twice": Odd(
        lines("ts,key", "2015-03-08 02:30:00,in the gap", "2015-03-08 03:30:00,after it", "2015-11-01 01:30:00,twice"),
        3,
    )
}

JSON = {
    "plain": Odd(lines('{"t": "2015-05-17", "k": "a", "c": 1}'), 1),
    "byte order mark": Odd(BOM + lines('{"t": "2015-05-17", "k": "a"}'), 1),
    "CRLF and no end": Odd(b'{"t": "2015-05-17", "k": "a"}\r\n\r\n{"t": "2015-05-17", "k": "b"}', 2),
    "nested": Odd(lines('{"t": "2015-05-17", "k": "a", "more": {"deep": [1, {"er": null}]}}'), 1),
    "arrays": Odd(lines("[]", '[{"t": "2015-05-17", "k": "a"}]', "[1, 2]"), 0, {NO_OBJECT: 3}),
    "values that are no objects": Odd(lines("1", '"text"', "null", "true", "NaN"), 0, {NO_OBJECT: 5}),
    "an empty object": Odd(lines("{}"), 0, {NO_TIME: 1}),
    "a key given twice": Odd(lines('{"t": "2015-05-17", "k": "a", "k": "b"}'), 1, keys=("b",)),
    "keys of other kinds": Odd(
        lines('{"t": "2015-05-17", "k": 7}', '{"t": "2015-05-18", "k": null}'), 2, keys=("7", None)
    ),
    "cut off": Odd(
        lines('{"t": "2015-05-17", "k": "a"', '{"t": "2015-05-17", "k": "a', '{"t"', "{"), 0, {NO_OBJECT: 4}
    ),
    "two on a line": Odd(lines('{"t": "2015-05-17", "k": "a"} {"t": "2015-05-17", "k": "a"}'), 0, {NO_OBJECT: 1}),
    "text behind": Odd(lines('{"t": "2015-05-17", "k": "a"} x', '{"t": "2015-05-17", "k": "a"},'), 0, {NO_OBJECT: 2}),
    "JavaScript": Odd(
        lines("{t: '2015-05-17', k: 'a'}", '{"t": "2015-05-17", "k": "a",}', '// {"t": 1}'), 0, {NO_OBJECT: 3}
    ),
    "100,000 levels of arrays": Odd(
        lines('{"t": "2015-05-17", "k": "a", "d": ' + "[" * 100_000 + "]" * 100_000 + "}"), 0, {NO_OBJECT: 1}
    ),
    "100,000 levels never closed": Odd(lines('{"t":' * 100_000), 0, {NO_OBJECT: 1}),
    "half a surrogate": Odd(
        lines(
            '{"t": "2015-05-17", "k": "\\ud800"}',
            '{"t": "2015-05-18", "k": "\\udc00x"}',
            '{"t": "2015-05-18", "k": "?", "unused": "\\ud83d\\ude00"}',
            '{"t": "2015-05-18", "k": "\\\\ud800?"}',
            '{"t": "2015-05-18", "k": "b", "unused": "\\ud800"}',
        ),
        3,
        {HALF: 2},
    ),
    "a whole surrogate": Odd(lines('{"t": "2015-05-17", "k": "\\ud83d\\ude00"}'), 1, keys=("\U0001f600",)),
    "NUL by an escape": Odd(lines('{"t": "2015-05-17", "k": "\\u0000"}'), 1, keys=("\0",)),
    "NUL and controls as they are": Odd(
        lines(b'{"t": "2015-05-17", "k": "a\0"}', b'{"t": "2015-05-17", "k": "a\tb"}'), 0, {NO_OBJECT: 2}
    ),
    "Latin-1": Odd(lines(b'{"t": "2015-05-17", "k": "Andr\xe9"}'), 0, {NOT_UTF8: 1}),
    "a field of 10 MiB": Odd(lines('{"t": "2015-05-17", "k": "a", "long": "' + "x" * 10 * MEBI + '"}'), 1),
    "costs": Odd(
        lines(
            *(
                f'{{"t": "2015-05-17", "k": "a", "c": {cost}}}'
                for cost in ("-1", "NaN", '"NaN"', "1e999", '"x"', "{}", "null")
            )
        ),
        1,
        {NEGATIVE: 1, NO_OBJECT: 1, NOT_FINITE: 1, BAD_COST: 3},
    ),
    "gzip": Odd(gzip.compress(lines('{"t": "2015-05-17", "k": "a"}')), 1),
}

WHEN = "[17/May/2015:10:05:03 +0000]"

LOG = {
    "plain": Odd(lines(f'h - - {WHEN} "GET / HTTP/1.1" 200 5', f'h - - {WHEN} "GET / HTTP/1.1" 200 5 "-" "curl"'), 2),
    "no size": Odd(lines(f'h - - {WHEN} "GET / HTTP/1.1" 200 -'), 1),
    "no request": Odd(lines(f'h - - {WHEN} "-" 408 -', f'h - - {WHEN} "" 400 0'), 2),
    "a request of TLS": Odd(lines(f'h - - {WHEN} "\\x16\\x03\\x01" 400 226'), 1),
    "quotes in the agent": Odd(lines(f'h - - {WHEN} "GET / HTTP/1.1" 200 5 "-" "a \\"b\\" c"'), 1),
    "quotes in the path": Odd(lines(f'h - - {WHEN} "GET /?q="x" HTTP/1.1" 200 5'), 1),
    "no log": Odd(lines("", " ", "hello", f"h - - {WHEN}", f'h - - {WHEN} "GET / HTTP/1.1" 2000 5'), 0, {NO_LOG: 4}),
    "times": Odd(
        lines(
            *(f'h - - [{when}] "GET / HTTP/1.1" 200 5' for when in ("31/Feb/2015:10:05:03 +0000", "17/May/2015", "-"))
        ),
        0,
        {BAD_TIME: 3},
    ),
    "bytes beyond int64": Odd(
        lines(f'h - - {WHEN} "GET / HTTP/1.1" 200 99999999999999999999'), 0, {"bytes is too large": 1}
    ),
    "Latin-1": Odd(lines(f'h - - {WHEN} "GET /'.encode() + b'\xe9 HTTP/1.1" 200 5'), 0, {NOT_UTF8: 1}),
    "a path of 1 MiB": Odd(lines(f'h - - {WHEN} "GET /{"x" * MEBI} HTTP/1.1" 200 5'), 1),
    "IPv6 and a user": Odd(lines(f'::1 - a@b {WHEN} "GET / HTTP/2.0" 304 0'), 1),
}

PATTERN = {
    "plain": Odd(lines("2015-05-17 a"), 1),
    "no match": Odd(lines("2015-05-17", "a 2015-05-17", "  "), 0, {NO_MATCH: 3}),
    "CR alone is no line end": Odd(b"2015-05-17 a\r2015-05-17 b\r", 0, {NO_MATCH: 1}),
    "NUL": Odd(b"2015-05-17 a\0b", 1, keys=("a\0b",)),
}

GROUPS = {
    "csv": Group(
        Mapping("key", "ts", cost="cost", cost_unit="us", bytes="bytes", stream=PATH, time_format="iso"),
        ReadOptions(FormatName.CSV, ",", header=True),
        CSV,
    ),
    "tsv": Group(Mapping("key", "ts", stream=PATH, time_format="iso"), ReadOptions(FormatName.TSV, header=True), TSV),
    "epochs": Group(
        Mapping("k", "t", stream=PATH, time_format="epoch_us"),
        ReadOptions(FormatName.CSV, ",", header=False, columns=("t", "k")),
        EPOCHS,
    ),
    "another zone": Group(Mapping("key", "ts", stream=PATH), ReadOptions(), OTHER_ZONE, "America/New_York"),
    "json": Group(
        Mapping("k", "t", cost="c", cost_unit="us", stream=PATH, time_format="iso"), ReadOptions(FormatName.JSONL), JSON
    ),
    "log": Group(Mapping("host", "time", bytes="bytes", stream=PATH), ReadOptions(FormatName.CLF), LOG),
    "pattern": Group(
        Mapping("k", "t", stream=PATH, time_format="iso"),
        ReadOptions(FormatName.TEXT, pattern=r"^(?P<t>\d{4}-\S+) (?P<k>[^\r]+)$"),
        PATTERN,
    ),
}


@dataclass(frozen=True, slots=True)
class Refused:
    """What no trace can be made of.

    Attributes:
        content: The bytes of the one source file, or how the files of a folder are made.
        says: A piece of the one sentence.
        options: What is asked for beside the file.
        code: The exit code.
        name: The file's name; "" for the folder.
    """

    content: bytes | Callable[[Path], None]
    says: str
    options: str = "--key key"
    code: int = 3
    name: str = "in.csv"


def cut(packed: bytes, share: float = 0.5) -> bytes:
    """The beginning of packed bytes."""
    return packed[: int(len(packed) * share)]


def flipped(content: bytes, at: int) -> bytes:
    """The bytes with one of them changed."""
    changed = bytearray(content)
    changed[at] ^= 0xFF
    return bytes(changed)


def parquet(table: pa.Table | Dict[str, object], **options: object) -> bytes:
    """A Parquet file."""
    kept = io.BytesIO()
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), kept, **options)
    return kept.getvalue()


class Keyring(KmsClient):
    """Wraps keys by base64 alone."""

    def wrap_key(self, key: bytes, master: str) -> bytes:
        return base64.b64encode(key)


def with_encrypted_key() -> bytes:
    """A Parquet file whose footer anyone can read, and whose keys nobody can."""
    encrypted = EncryptionConfiguration(footer_key="f", column_keys={"c": ["key"]}, plaintext_footer=True)
    factory = CryptoFactory(lambda _: Keyring())
    properties = factory.file_encryption_properties(KmsConnectionConfig(), encrypted)
    table, kept = pa.table(TYPED), io.BytesIO()
    with pq.ParquetWriter(kept, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    return kept.getvalue()


MANY = lines(
    HEAD,
    *(row(ts=f"2015-05-17T10:00:{at % 60:02}.{at * 7919 % 10**6:06}", key=f"u{at * 31 % 97}") for at in range(5000)),
)
TIMES = pa.array([1, 2, 3], pa.timestamp("us"))
TYPED = {"ts": TIMES, "key": ["a", "b", "c"], "cost": [1.0, 2.0, 3.0]}
KEYED = "--key key --time ts --format "

REFUSED = {
    # which files
    "no such file": Refused(lambda _: None, "none.csv does not exist", name="none.csv"),
    "a folder with nothing in it": Refused(lambda _: None, "is a folder without files", name=""),
    "a link to nothing": Refused(lambda folder: (folder / "in.csv").symlink_to("gone"), "in.csv does not exist"),
    "a folder linked into itself": Refused(
        lambda folder: (folder / "again").symlink_to("."), "cannot be read", name=""
    ),
    "a file twice by a link": Refused(lambda folder: linked(folder), "is given twice", code=2, name=""),
    "a pipe in a folder": Refused(lambda folder: os.mkfifo(folder / "in.csv"), "is a pipe or device", name=""),
    "a name that is no UTF-8": Refused(
        lambda folder: Path(os.fsdecode(os.fsencode(folder) + b"/\xff.csv")).write_bytes(PLAIN), "is not UTF-8", name=""
    ),
    # empty
    "empty": Refused(b"", "in.csv is empty"),
    "a blank line before one that is too long": Refused(lines("", "x" * 300_000), "the line is too long", "--key key"),
    "a header alone": Refused(lines(HEAD), "in.csv has no rows", "--key key --time ts"),
    # encodings
    "UTF-16 little endian": Refused(PLAIN.decode().encode("utf-16"), "iconv -f utf-16 -t utf-8"),
    "UTF-16 in gzip": Refused(gzip.compress(PLAIN.decode().encode("utf-16")), "iconv -f utf-16 -t utf-8"),
    "a header in Latin-1": Refused(
        "ts,key,größe\n2015-05-17,a,1\n".encode("latin-1"), "the header is not UTF-8", "--key key"
    ),
    "a program": Refused(b"\x7fELF\2\1\1\0\0\0\0\0", "is neither text nor Parquet"),
    # containers
    "gzip cut off": Refused(cut(gzip.compress(MANY)), "in.csv is truncated or damaged"),
    "gzip with a wrong checksum": Refused(flipped(gzip.compress(MANY), -6), "in.csv is truncated or damaged"),
    "xz cut off": Refused(cut(lzma.compress(MANY)), "in.csv is truncated or damaged"),
    "zstd cut off": Refused(cut(zstd(MANY)), "in.csv is truncated or damaged"),
    "zip cut off": Refused(cut(zipped(a=MANY)), "in.csv is truncated or not a zip archive"),
    "zip damaged": Refused(flipped(zipped(a=MANY), 2000), "in.csv/a is truncated or damaged"),
    "zip with a wrong checksum": Refused(
        zipped(a=MANY).replace(checksum(MANY), b"\0\0\0\0"), "in.csv/a is truncated or damaged"
    ),
    "tar": Refused(tarred(a=PLAIN), "unpack it with `tar -xf`"),
    # text
    "another header in the second file": Refused(
        lambda folder: put(folder, a=PLAIN, b=lines("ts,user", "1,2")),
        "b has no column 'key', the key of the other files",
        name="",
    ),
    "every row too short": Refused(
        lines(HEAD, "1", "2"),
        "all 2 rows were rejected: 1 fields instead of 4",
        KEYED + "csv --header --delimiter , --time-format iso",
    ),
    "a quote that swallows the file": Refused(
        lines(HEAD) + b'"' + b"x" * 65 * MEBI, "a record must not exceed 64 MiB", KEYED + "csv --header"
    ),
    "two arrays of JSON": Refused(
        b'{"a": [{"ts": 1}], "b": [{"ts": 2}]}', "two arrays of objects, a and b", "--key key"
    ),
    "a log of another kind": Refused(
        lines("Nov 22 00:00:01 host sshd[1]: x"), "rows were rejected", "--key host --source-format clf"
    ),
    # Parquet
    "Parquet cut off": Refused(cut(parquet(TYPED)), "in.csv is truncated or not valid Parquet"),
    "Parquet with damaged pages": Refused(flipped(parquet(TYPED, compression="gzip"), 40), "in.csv is damaged"),
    "Parquet with an encrypted footer": Refused(b"PARE" + parquet(TYPED)[4:-4] + b"PARE", "encrypted"),
    "Parquet with encrypted columns": Refused(with_encrypted_key(), "in.csv is a Parquet file with encrypted columns"),
    "Parquet with two columns of a name": Refused(
        parquet(pa.table([TIMES, ["a", "b", "c"], [1, 2, 3], [1, 2, 3]], ["ts", "key", "z", "z"])),
        "in.csv has several columns named 'z'; rename all but one",
    ),
    "Parquet that is text": Refused(PLAIN, "in.csv is truncated or not valid Parquet", KEYED + "parquet"),
    "Parquet in gzip": Refused(gzip.compress(parquet(TYPED)), "Parquet files cannot be read inside archives"),
    "decimal commas": Refused(
        b"ts;key;ms\n2024-03-01 10:00:00;a;10,5\n2024-03-01 10:00:01;b;11,5\n",
        "decimal commas are read by --cost \"replace(COLUMN, ',', '.')\"",
        "--key key --cost ms --cost-unit ms",
    ),
    "Parquet of another type in the second file": Refused(
        lambda folder: put(folder, a=parquet(TYPED), b=parquet({**TYPED, "ts": [1, 2, 3]})),
        "ts is int64 in b and timestamp[us] in a",
        name="",
    ),
    "keys that are lists": Refused(parquet({"ts": TIMES, "key": [[1], [2], [3]]}), "has type array<bigint>", code=2),
    "times of the day as times": Refused(
        parquet(TYPED | {"at": pa.array([1, 2, 3], pa.time64("us"))}),
        "Spark cannot read column 'at' of type TIME",
        "--key key --time at",
    ),
}
