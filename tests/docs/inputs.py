"""What the commands of the pages read: real streams in the formats in which they were published, perhaps cut.

Each file has the name that the pages give it. Where a page wants columns that no published file has, they are made from
those that one has, row by row.
"""

import bz2
import csv
import gzip
import io
import shutil
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TextIO

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import orc

from tests.docs.pages import ROOT

Find = Callable[[str], Path]
"""Finds a published file."""

Most = int | None
"""Rows to take of each file; None, all."""

NOON_MS, FXCM_BEHIND_MS = 12 * 3_600_000, 5 * 3_600_000
"""Of UTC; the clock of the venue fxcm."""

WEBLOG, MESSAGES = "weblog-2015/apache_logs", "messages/CollegeMsg.txt"


def put(name: str, folder: Path, find: Find, most: Most) -> None:
    """Put one input where the commands look for it."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    MAKERS[name](path, find, most)


def access_log(path: Path, find: Find, most: Most) -> None:
    """A web log."""
    with find(WEBLOG).open() as source, path.open("w") as out:
        out.writelines(islice(source, most))


def hosts(path: Path, find: Find, most: Most) -> None:
    """Its first hosts, a key a line."""
    with find(WEBLOG).open() as source:
        path.write_text("".join(line.split()[0] + "\n" for line in islice(source, 20)))


def reviews(path: Path, find: Find, most: Most) -> None:
    """Reviews of vendors."""
    with bz2.open(find("reviews/anonreviews.csv.bz2"), "rt") as source, bz2.open(path, "wt") as out:
        out.writelines(islice(source, most))


def edits(path: Path, find: Find, most: Most) -> None:
    """Edits of Wikipedia."""
    with (
        gzip.open(find("wiki-edits/wikiticker-2015-09-12-sampled.json.gz"), "rt") as source,
        gzip.open(path, "wt") as out,
    ):
        out.writelines(islice(source, most))


def ticks(path: Path, find: Find, most: Most) -> None:
    """Quotes of two venues, a zip a day and instrument; where they are cut, those from noon on of all."""
    published = find("fx-ticks")
    if most is None:
        shutil.copytree(published, path)
        return
    for source in sorted(published.rglob("*.zip")):
        cut = path / source.relative_to(published)
        cut.parent.mkdir(parents=True, exist_ok=True)
        noon_ms = NOON_MS - (FXCM_BEHIND_MS if "fxcm" in source.parts else 0)
        with zipfile.ZipFile(source) as read, zipfile.ZipFile(cut, "w") as written:
            for member in read.namelist():
                with read.open(member) as lines:
                    later = (line for line in lines if float(line.split(b",", 1)[0]) >= noon_ms)
                    written.writestr(member, b"".join(islice(later, most // 10)))


def messages(find: Find, most: Most) -> Iterator[tuple[str, str, datetime]]:
    """Messages: who, to whom, when."""
    with find(MESSAGES).open() as source:
        for line in islice(source, most):
            sender, receiver, at = line.split()
            yield sender, receiver, datetime.fromtimestamp(int(at), UTC)


def app_log(path: Path, find: Find, most: Most) -> None:
    """The senders of messages, in a log of no usual format."""
    with path.open("w") as out:
        out.writelines(f"{at:%Y-%m-%dT%H:%M:%SZ} user={sender} sent\n" for sender, _, at in messages(find, most))


def sample(path: Path, find: Find, most: Most) -> None:
    """The senders of messages as a sample of rows."""
    with path.open("w") as out:
        _write(out, ("ts", "user"), ((f"{at:%Y-%m-%dT%H:%M:%SZ}", sender) for sender, _, at in messages(find, most)))


def clicks(path: Path, find: Find, most: Most) -> None:
    """Messages as events of two topics, by the parity of the receiver."""
    topics = ("clicks", "views")
    rows = (
        (f"{at:%Y-%m-%dT%H:%M:%SZ}", sender, topics[int(receiver) % 2]) for sender, receiver, at in messages(find, most)
    )
    with path.open("w") as out:
        _write(out, ("ts", "user", "topic"), rows)


def departures(path: Path, find: Find, most: Most) -> None:
    """Departures of aircraft by local time; those that were cancelled have none."""
    with gzip.open(find("flights/flights.csv.gz"), "rt") as source, path.open("w") as out:
        flights = (row for row in csv.DictReader(source) if row["dep_time"] not in ("NA", "2400"))
        _write(out, ("tail", "dep_time"), ((row["tailnum"], _local(row)) for row in islice(flights, most)))


def _local(row: dict[str, str]) -> str:
    time = row["dep_time"].zfill(4)
    return f"{row['year']}-{int(row['month']):02}-{int(row['day']):02} {time[:2]}:{time[2:]}:00"


def _write(out: TextIO, header: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> None:
    text = io.StringIO()
    written = csv.writer(text, lineterminator="\n")
    written.writerow(header)
    written.writerows(rows)
    out.write(text.getvalue())


def example(path: Path, find: Find, most: Most) -> None:
    """A file of the tree."""
    shutil.copy(ROOT / "examples" / path.name, path)


def rides(path: Path, find: Find, most: Most) -> None:
    """Messages as rides, their senders as riders: a container of Avro, a file of ORC, or Parquet in a folder a day."""
    rows = [(at, f"r{sender}") for sender, _, at in messages(find, most)]
    if path.suffix == ".avro":
        time = {"type": "long", "logicalType": "timestamp-micros"}
        fields = [{"name": "at", "type": time}, {"name": "rider", "type": "string"}]
        with path.open("wb") as out:
            records = (dict(zip(("at", "rider"), row, strict=True)) for row in rows)
            fastavro.writer(out, {"type": "record", "name": "Ride", "fields": fields}, records)
        return
    times, riders = zip(*rows, strict=True)
    table = pa.table({"at": pa.array(times, pa.timestamp("us", "UTC")), "rider": riders})
    if path.suffix == ".orc":
        orc.write_table(table, path)
        return
    days = pc.strftime(table["at"], "%Y-%m-%d")
    for day in days.unique().to_pylist():
        part = path / f"day={day}" / "part-0.parquet"
        part.parent.mkdir(parents=True)
        pq.write_table(table.filter(pc.equal(days, day)), part)


MAKERS: dict[str, Callable[[Path, Find, Most], None]] = {
    "access.log": access_log,
    "keys.txt": hosts,
    "reviews.csv.bz2": reviews,
    "edits.json.gz": edits,
    "ticks": ticks,
    "app.log": app_log,
    "skew/sample.csv": sample,
    "clicks.csv": clicks,
    "departures.csv": departures,
    "examples/fx-ticks.toml": example,
    "examples/drifting.toml": example,
    "rides": rides,
    "rides.orc": rides,
    "rides.avro": rides,
}
"""What makes each input."""
