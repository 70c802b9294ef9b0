"""Changes of a source that may change nothing, or in a known way, against counts by hand."""

import csv
import io
import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.tiers import SOAK

CASES = 60 if SOAK else 1
CHANNELS = 3


class Source:
    """Random rows of keys and sizes at different seconds, in order of time."""

    def __init__(self, seed: int, between: tuple[int, int] = (20, 300)) -> None:
        chance = np.random.default_rng(seed)
        rows = int(chance.integers(*between))
        self.seconds = 1_700_000_000 + np.cumsum(chance.integers(1, 400, rows))
        names = [f"user {n}" if n % 3 else f"é{n}" for n in range(int(chance.integers(2, 40)))]
        self.keys = [names[int(n) % len(names)] for n in np.minimum(chance.zipf(1.3, rows), 10**6)]
        self.sizes = chance.integers(1, 1000, rows)

    def table(self, rows=slice(None), keys=None, shift_s=0) -> pa.Table:
        """Rows as a table, under other names or at other times."""
        return pa.table(
            {
                "ts": pa.array((self.seconds + shift_s) * 1_000_000, pa.timestamp("us", "UTC")),
                "key": pa.array([keys[key] for key in self.keys] if keys else self.keys),
                "size": pa.array(self.sizes),
            }
        ).take(pa.array(np.arange(len(self.keys))[rows]))


def ingested(adapt, name, table, files=1, form="parquet"):
    """A trace of the rows, written as files of a format."""
    for number, part in enumerate(np.array_split(np.arange(table.num_rows), files)):
        rows = table.take(pa.array(part))
        if form == "parquet":
            pq.write_table(rows, f"{name}.{number}.parquet")
        else:
            dicts = [{**row, "ts": row["ts"].isoformat()} for row in rows.to_pylist()]
            with open(f"{name}.{number}.{form}", "w", newline="", encoding="utf-8") as file:
                if form == "csv":
                    writer = csv.DictWriter(file, ["ts", "key", "size"])
                    writer.writeheader()
                    writer.writerows(dicts)
                else:
                    file.writelines(json.dumps(row) + "\n" for row in dicts)
    sources = [f"{name}.{number}.{form}" for number in range(files)]
    adapt.done("ingest", *sources, "--key", "key", "--time", "ts", "--bytes", "size", "-o", f"{name}.trace")
    return f"{name}.trace"


def content(path):
    with open(f"{path}/_manifest.json", encoding="utf-8") as file:
        return json.load(file)["content_hash"]


def rows_of(out, title):
    """A table of CSV output, by its title."""
    part = out.split(f"# {title}\n")[1].split("\n# ")[0]
    return list(csv.DictReader(io.StringIO(part)))


def counted(adapt, *traces):
    """Rows of each key, as `partition count` lists them."""
    out = adapt.done("partition", "count", *traces, "--method", "exact", "--all", "--format", "csv").out
    rows = rows_of(out, "Top keys")
    assert all(row["count_low"] == row["count_high"] for row in rows)
    return {row["key"]: int(row["count_low"]) for row in rows}


def as_json(adapt, *line):
    return adapt.json(*line)


def built(adapt, trace, name, *more):
    return as_json(adapt, "partition", "build", trace, "--channels", CHANNELS, "-o", name, *more)


@pytest.mark.parametrize("seed", range(CASES))
def test_results_follow_their_source(adapt, spark, tmp_path, monkeypatch, seed):
    monkeypatch.chdir(tmp_path)
    source = Source(seed)
    table, true = source.table(), Counter(source.keys)
    whole = ingested(adapt, "whole", table)
    assert counted(adapt, whole) == true

    # Files, their format, and the order of their rows do not matter.
    for name, same in {
        "csv": ingested(adapt, "csv", table, 3, "csv"),
        "lines": ingested(adapt, "lines", table, 2, "jsonl"),
        "mixed": ingested(adapt, "mixed", table.take(np.random.default_rng(seed).permutation(len(table)))),
    }.items():
        assert content(same) == content(whole), name

    # Counts of parts add up, as one stream and by hand.
    cut = len(table) // 3
    parts = [ingested(adapt, name, source.table(rows)) for name, rows in (("a", slice(cut)), ("b", slice(cut, None)))]
    assert counted(adapt, *parts) == true
    assert Counter(counted(adapt, parts[0])) + Counter(counted(adapt, parts[1])) == true

    # Another start, and every row twice, change no share; other names change only where keys go.
    shifted = ingested(adapt, "shifted", source.table(shift_s=86_400 * 31))
    twice = ingested(adapt, "twice", pa.concat_tables([table, table]))
    renamed = ingested(adapt, "renamed", source.table(keys={key: f"n{at}" for at, key in enumerate(true)}))
    plans = {
        name: built(adapt, name, f"{name}.plan")
        for name in ("whole.trace", "shifted.trace", "twice.trace", "renamed.trace")
    }
    plan = plans["whole.trace"]
    assert plans["shifted.trace"]["explicit"] == plan["explicit"]
    assert plans["shifted.trace"]["metrics"] == plan["metrics"]
    assert counted(adapt, twice) == {key: 2 * rows for key, rows in true.items()}
    for name in plans:
        assert plans[name]["metrics"]["best_possible"] == pytest.approx(plan["metrics"]["best_possible"]), name
    assert sorted(counted(adapt, renamed).values()) == sorted(true.values())
    assert content(shifted) != content(whole)

    # Plan, route, a count by hand, and evaluation agree.
    keys = tmp_path / "keys"
    keys.write_text("".join(f"{key}\n" for key in true), encoding="utf-8")
    routed = dict(
        line.split("\t") for line in adapt.done("partition", "route", "whole.trace.plan", keys).out.splitlines()
    )
    loads = [sum(true[key] for key in true if routed[key] == str(channel)) for channel in range(CHANNELS)]
    imbalance = max(loads) / np.mean(loads)
    assert plan["metrics"]["imbalance"] == pytest.approx(imbalance)
    _, after = as_json(adapt, "partition", "evaluate", whole, "whole.trace.plan")["plans"]
    assert after["loads"]["state"] == loads
    assert after["measured"]["imbalance"] == pytest.approx(imbalance)
    compared = as_json(adapt, "partition", "compare", whole, "--channels", CHANNELS)
    hybrid = next(row for row in compared["rows"] if row["construction"] == "level")
    assert hybrid["imbalance"] == pytest.approx(imbalance)

    # The same numbers in every format.
    line = ("partition", "evaluate", whole, "whole.trace.plan")
    _, of_csv = rows_of(adapt.done(*line, "--format", "csv").out, "Plans measured on every key")
    assert float(of_csv["imbalance"]) == pytest.approx(imbalance)
    assert f" {imbalance:.3f} " in adapt.done(*line).out
    adapt.done("report", whole, "whole.trace.plan", "--html", "page.html")
    assert f"{imbalance:.3f}" in (tmp_path / "page.html").read_text(encoding="utf-8")

    # Moves there and back are the same.
    built(adapt, parts[0], "a.plan")
    other = dict(line.split("\t") for line in adapt.done("partition", "route", "a.plan", keys).out.splitlines())
    moved = {key for key in true if other[key] != routed[key]}
    pairs = ("whole.trace.plan", "a.plan"), ("a.plan", "whole.trace.plan")
    there, back = (as_json(adapt, "partition", "diff", whole, *pair) for pair in pairs)
    assert there["keys_moved"] == back["keys_moved"] == len(moved)
    assert there["state_moved"] == back["state_moved"] == sum(true[key] for key in moved)
    assert there["state_moved"] == np.transpose(back["state_moved"]).tolist()
    assert {(one["key"], one["from"], one["to"]) for one in there["hot_keys"]} == {
        (one["key"], one["to"], one["from"]) for one in back["hot_keys"]
    }


def judged(adapt, *traces):
    """What a verdict says of a stream."""
    found = as_json(adapt, "verdict", ",".join(traces), "--channels", CHANNELS, "--engine", "kafka")
    for remedy in found["verdict"]["remedies"]:
        remedy.pop("command")  # it names the trace
    return found["verdict"], found["frontier"]


@pytest.mark.parametrize("rows", [(1, 8), (20, 300)])
@pytest.mark.parametrize("seed", range(20 if SOAK else 1))
def test_verdicts_follow_their_source(adapt, tmp_path, monkeypatch, promise, seed, rows):
    monkeypatch.chdir(tmp_path)
    source, chance = Source(seed, rows), np.random.default_rng(seed)
    table = source.table()
    expected = judged(adapt, ingested(adapt, "whole", table))
    shuffled = chance.permutation(len(table))

    # The order of rows in their source, another start, and several traces as one stream change nothing.
    assert judged(adapt, ingested(adapt, "mixed", table.take(shuffled))) == expected
    assert judged(adapt, ingested(adapt, "shifted", source.table(shift_s=86_400 * 31))) == expected
    if cut := len(table) // 2:
        parts = [("a", slice(cut)), ("b", slice(cut, None))]
        assert judged(adapt, *(ingested(adapt, name, source.table(part)) for name, part in parts)) == expected

    # Other names change no share, every row twice only how sure it is; rows of one time may come in any order.
    metrics = ("best_possible", "top_share", "imbalance")
    names = {key: f"n{at}" for at, key in enumerate(dict.fromkeys(source.keys))}
    renamed, _ = judged(adapt, ingested(adapt, "renamed", source.table(keys=names)))
    assert [renamed[name] for name in metrics[:2]] == pytest.approx([expected[0][name] for name in metrics[:2]])
    at_once = table.set_column(0, "ts", table["ts"].take(pa.array([0] * len(table))))
    for name, same in (("twice", pa.concat_tables([table, table])), ("at once", at_once.take(shuffled))):
        other, _ = judged(adapt, ingested(adapt, name, same))
        assert [other[name] for name in metrics] == pytest.approx([expected[0][name] for name in metrics]), name
    promise("relations").checked(6)
