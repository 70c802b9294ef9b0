"""Random inputs, other ones each day in the long tier: option values, polluted CSV."""

import csv
import io
import json
import warnings
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pyarrow.parquet as pq
import pytest

from adapt.calling import command_named
from tests.journeys.test_unusual_values import LINES, drawn, fault, limited, made_inputs, no_java
from tests.tiers import SEED, SOAK, soak
from tests.traces.ingest.mutation import changes_of, mutated
from tests.traces.units.test_reading import EXPOSED, GROUPS, T0, answer, rising


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current folder, without Spark."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("adapt.traces.spark.session._started", no_java)
    return tmp_path


@soak
@pytest.mark.parametrize("batch", range(10))
def test_option_values_of_the_day_end_in_an_answer_or_one_sentence(adapt, here, promise, batch):
    made_inputs(adapt)
    for words, _ in LINES:
        command_named(words)
    faults = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(60):
            typed = drawn(np.random.default_rng([SEED, batch, seed]))
            with limited():
                said = adapt(*typed)
            faults += [(SEED, batch, seed, found, typed, said.err[-300:]) for found in [fault(said)] if found]
    assert not faults, "\n".join(map(str, faults))
    promise("option-values").checked(60)


TEXTS = [
    "a",
    "b",
    "user 7",
    "é",
    "a,b",
    'say "hi"',
    "line\nbreak",
    "tab\tin",
    "semi;colon",
    "0",
    "-1",
    "1e5",
    "ключ",
    "x" * 70,
]
ENDS = ["\n", "\r\n"]
WIDTH = 3


def polluted(chance):
    """A CSV file with two of Pollock's kinds of pollution, its options, and the kinds."""
    delimiter, end = chance.choice(",;\t|"), chance.choice(ENDS)
    kinds = chance.sample(["extra", "missing", "blank", "repeated", "nul", "mark", "quotes", "header", "stray"], 2)
    rows = [[chance.choice(TEXTS), str(at), chance.choice(TEXTS)] for at in range(chance.randrange(4, 40))]
    rows.insert(0, ["key", "number", "text"])
    at = chance.randrange(1, len(rows))
    if "extra" in kinds:
        rows[at] = [*rows[at], *["more"] * chance.choice([1, 2])]
    if "missing" in kinds:
        at = chance.randrange(1, len(rows))
        rows[at] = rows[at][: chance.choice([1, 2])]
    if "nul" in kinds:
        rows[at][0] += "\0"
    if "repeated" in kinds:
        rows.insert(at, rows[0])
    if "header" in kinds:
        rows.pop(0)
    written = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if "quotes" in kinds else csv.QUOTE_MINIMAL
    csv.writer(written, delimiter=delimiter, lineterminator=end, quoting=quoting).writerows(rows)
    text = written.getvalue()
    if "blank" in kinds:
        text = text.replace(end, end * 3, 1) + end
    if "stray" in kinds:
        text += delimiter.join(['c"d', "7", 'e"']) + end
    data = text.encode()
    if "mark" in kinds:
        data = b"\xef\xbb\xbf" + data
    options = [f"--delimiter={delimiter}", "--columns=key,number,text" if "header" in kinds else "--header"]
    return data, [*options, "--no-header"] if "header" in kinds else options, kinds


def rows_by_python(data, delimiter, has_header):
    """Rows of three fields whose second is a number, and how many others there are."""
    text = data.decode("utf-8-sig")
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row][has_header:]
    good = [(row[0], int(row[1]), row[2]) for row in rows if len(row) == WIDTH and row[1].isdigit()]
    return good, len(rows) - len(good)


@pytest.mark.parametrize("batch", range(10 if SOAK else 1))
def test_what_is_kept_of_polluted_csv_is_what_python_reads(adapt, here, promise, batch):
    for seed in range(40 if SOAK else 8):
        data, options, kinds = polluted(Random(f"{SEED} {batch} {seed}"))
        Path("in.csv").write_bytes(data)
        line = "ingest in.csv --source-format=csv --key=key --time=number --time-format=epoch_s --keep=text".split()
        said = adapt(*line, *options, "--max-rejects=100%", "-o", "x.trace", "--force", "--json")
        where = f"{SEED} {batch} {seed} {kinds}: {said.err}"
        good, others = rows_by_python(data, options[0][-1], "--header" in options)
        assert said.code == 0, where
        found = json.loads(said.out)
        assert (found["rows"], found["rejects"]["rows"]) == (len(good), others), where
        (part,) = Path("x.trace").glob("part-*.parquet")
        kept = pq.read_table(part).to_pylist()
        assert Counter((row["key"], int(row["ts"].timestamp()), row["text"]) for row in kept) == Counter(good), where
    promise("pollution").checked(40 if SOAK else 8)


TIMES = [f"2024-01-01T00:0{at}:00Z" for at in range(4)]
METRICS = [
    json.dumps(answer([({"partition": str(at)}, rising([at, 1, 2])) for at in range(4)])),
    json.dumps({"MetricDataResults": [{"Label": f"s{at}", "Timestamps": TIMES, "Values": [1, at]} for at in range(4)]}),
    json.dumps({"id": "v", "now": T0 * 1000, "subtasks": [{"subtask": at, "metrics": {"n": at}} for at in range(4)]}),
    "".join(f"t:{at}:{at}0\n" for at in range(4)),
    EXPOSED,
    GROUPS,
]


@pytest.mark.parametrize("batch", range(10 if SOAK else 1))
def test_mutated_metrics_end_in_an_answer_or_one_sentence(adapt, here, batch):
    for seed in range(300 if SOAK else 40):
        chance = Random(f"{SEED} {batch} {seed}")
        Path("in").write_bytes(mutated(chance.choice(METRICS).encode(), changes_of(chance)))
        said = adapt("verdict", "in", *chance.choice([[], ["--key=partition"], ["--channels=2", "--key=k"]]), "--force")
        assert not fault(said), f"{SEED} {batch} {seed}: {said}"
