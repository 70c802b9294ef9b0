"""Good files of every text format, and what befalls bytes."""

import bz2
import gzip
import lzma
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

import pyarrow as pa
from hypothesis import strategies as st

from adapt.traces.sources.names import FormatName
from adapt.traces.sources.sniff import ReadOptions
from tests.traces.ingest.odd_inputs import zipped
from tests.traces.sources.plain_records import plain_lines, plain_records


@dataclass(frozen=True, slots=True)
class Good:
    """A good file, how it is read, and how its records are counted byte by byte."""

    content: bytes
    reading: ReadOptions = field(default_factory=ReadOptions)
    records: Callable[[bytes], Sequence[object]] = plain_records


ROWS = [(f"2015-05-17T10:{at // 60:02}:{at % 60:02}Z", f"u{at * 31 % 7}", f"{at}.5") for at in range(60)]
CSV = "".join(f'{ts},{key},"{cost}"\n' for ts, key, cost in ROWS).encode()
HEADED = b"ts,key,cost\r\n" + CSV.replace(b"\n", b"\r\n").replace(b"u3", '"ü,\n"'.encode())
TSV = CSV.replace(b",", b"\t")
JSON = "".join(f'{{"ts": "{ts}", "key": "{key}\\u00e9", "cost": {cost}, "n": [1, null]}}\n' for ts, key, cost in ROWS)
LOG = "".join(
    f'h{at % 7} - - [17/May/2015:10:{at // 60:02}:{at % 60:02} +0000] "GET /{at} HTTP/1.1" 200 {at} "-" "curl/8"\n'
    for at in range(60)
)

GOOD = {
    "csv": Good(CSV, ReadOptions(FormatName.CSV, ",", header=False, columns=("ts", "key", "cost"))),
    "csv with a header": Good(HEADED, ReadOptions(header=True)),
    "csv guessed": Good(HEADED),
    "tsv": Good(TSV, ReadOptions(FormatName.TSV, header=False)),
    "json": Good(JSON.encode(), ReadOptions(FormatName.JSONL), plain_lines),
    "json guessed": Good(JSON.encode()),
    "log": Good(LOG.encode(), ReadOptions(FormatName.CLF), plain_lines),
    "log guessed": Good(LOG.encode()),
    "pattern": Good(LOG.encode(), ReadOptions(pattern=r"^(?P<key>\S+) .* \[(?P<ts>.*)\] (?P<rest>.*)$"), plain_lines),
    "gzip": Good(gzip.compress(CSV, mtime=0)),
    "bzip2": Good(bz2.compress(CSV)),
    "xz": Good(lzma.compress(CSV)),
    "zstd": Good(bytes(pa.Codec("zstd").compress(CSV, asbytes=True))),
    "zip": Good(zipped(**{"a.csv": CSV, "b.csv": CSV})),
}

ODD_BYTES = (
    b"\0",
    b"\n",
    b"\r",
    b'"',
    b",",
    b"\t",
    b"{",
    b"}",
    b"[",
    b"\\",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"PAR1",
)

places = st.floats(0, 1, exclude_max=True)
lengths = st.integers(1, 40)
edits = st.one_of(
    st.tuples(st.just("flip"), places, st.integers(0, 7)),
    st.tuples(st.just("delete"), places, lengths),
    st.tuples(st.just("insert"), places, st.one_of(st.sampled_from(ODD_BYTES), st.binary(max_size=8))),
    st.tuples(st.just("truncate"), places, st.none()),
    st.tuples(st.just("double"), places, lengths),
    st.tuples(st.just("splice"), places, st.tuples(st.sampled_from(sorted(GOOD)), places, lengths)),
)
mutations = st.lists(edits, min_size=1, max_size=5)


def mutated(content: bytes, changes: Sequence[tuple[str, float, object]]) -> bytes:
    """The bytes after what befalls them, one thing after another."""
    for kind, place, what in changes:
        at = int(place * len(content))
        match kind, what:
            case "flip", int(bit) if content:
                content = content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]
            case "delete", int(length):
                content = content[:at] + content[at + length :]
            case "insert", bytes(inserted):
                content = content[:at] + inserted + content[at:]
            case "truncate", _:
                content = content[:at]
            case "double", int(length):
                content = content[: at + length] + content[at:]
            case "splice", (str(name), float(other), int(length)):
                source = GOOD[name].content
                first = int(other * len(source))
                content = content[:at] + source[first : first + length] + content[at + length :]
    return content


def changes_of(random: Random) -> list[tuple[str, float, object]]:
    """Some changes, as `mutations` has them, by plain chance."""
    kinds = {
        "flip": lambda: random.randrange(8),
        "delete": lambda: random.randint(1, 40),
        "insert": lambda: random.choice(ODD_BYTES),
        "truncate": lambda: None,
        "double": lambda: random.randint(1, 40),
        "splice": lambda: (random.choice(sorted(GOOD)), random.random(), random.randint(1, 40)),
    }
    chosen = random.choices(sorted(kinds), [1, 3, 3, 3, 3, 1], k=random.randint(1, 5))
    return [(kind, random.random(), kinds[kind]()) for kind in chosen]
