"""`adapt advise keys`: numbers alone, hot keys of counts, wrong usage."""

import json

import pytest


@pytest.fixture
def counts(tmp_path, monkeypatch):
    """A CSV of counted keys in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text("key,count\namazon,400\nebay,200\n" + "".join(f"k{n},1\n" for n in range(400)))


def advised(adapt, *line):
    return json.loads(adapt.done("advise", "keys", *line, "--format", "json").out)


def test_numbers_need_no_trace(adapt, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    told = advised(adapt, "--parallelism", 120)
    assert told["schema"] == "adapt.advice/1"
    assert (told["flink"][0]["key_groups"], told["flink"][0]["busiest"]) == (256, 3)
    assert told["flink"][0]["excess"] == pytest.approx(3 * 120 / 256 - 1)
    assert {row["case"]: row["key_groups"] for row in told["flink"]}["even"] == 360
    assert told["kafka"] is told["keys"] is None
    shown = adapt.done("advise", "keys", "-p", 48, "--max-parallelism", 128, "--partitions", 60).out
    assert max(map(len, shown.splitlines())) <= 80
    assert "Kafka: partitions over consumers" in shown


def test_idle_consumers_are_counted(adapt):
    (asked, *_) = advised(adapt, "-p", 50, "--partitions", 12)["kafka"]
    assert (asked["busiest"], asked["idle"]) == (1, 38)


def test_heavy_keys_get_their_salts(adapt, counts):
    told = advised(adapt, "counts.csv", "-p", 10, "--max-imbalance", "1.25")
    assert told["useful"][0]["useful_workers"] == pytest.approx(2.5)
    assert [(row["key"], row["salts"]) for row in told["keys"]] == [("amazon", 4), ("ebay", 2)]
    (named,) = advised(adapt, "counts.csv", "-p", 10, "--key", "k7", "--engine", "kafka")["keys"]
    assert (named["salts"], named["salts_hashed"], named["partials"]) == (1, 1, 1)


def test_a_region_is_partitioned_by_the_columns_that_its_operators_share(adapt):
    line = ("-p", 8, "--operator", "count=user,page", "--operator", "sum=page, user,hour", "--operator", "top=user")
    assert [(row["operator"], row["region_keys"]) for row in advised(adapt, *line)["region"]] == [
        ("count", "user"),
        ("sum", "user"),
        ("top", "user"),
    ]
    assert "Partition the region by user." in adapt.done("advise", "keys", *line).out
    assert advised(adapt, "-p", 8)["region"] is None


@pytest.mark.parametrize(
    ("code", "line", "told"),
    [
        (2, "-p 8 --operator a=x,y --operator b=y --operator c=x", "operator c (by x) shares no key column with the"),
        (2, "-p 8 --operator a=x --operator a=y", "a is given twice"),
        (2, "-p 8 --key amazon", "needs a trace"),
        (2, "-p 8 --max-parallelism 4", "--max-parallelism must be from 8"),
        (3, "counts.csv -p 8 --key amazn", "did you mean 'amazon'"),
    ],
)
def test_wrong_usage_is_rejected_in_one_line(adapt, counts, code, line, told):
    assert told in adapt.refused(code, "advise", "keys", *line.split())
