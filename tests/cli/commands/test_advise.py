"""`adapt advise salts` and `adapt generate`."""

import json

import pytest

from adapt.traces.store.trace import open_trace


@pytest.fixture
def counts(tmp_path, monkeypatch):
    """A CSV of counted keys in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text("key,count\namazon,400\nebay,200\n" + "".join(f"k{n},1\n" for n in range(400)))


def advised(adapt, *line):
    return adapt.json("advise", "salts", *line)


def test_numbers_need_no_trace(adapt, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    told = advised(adapt, "--parallelism", 120)
    assert told["schema"] == "adapt.advice/1"
    assert (told["flink"][0]["key_groups"], told["flink"][0]["busiest"]) == (256, 3)
    assert told["flink"][0]["excess"] == pytest.approx(3 * 120 / 256 - 1)
    assert {row["case"]: row["key_groups"] for row in told["flink"]}["even"] == 360
    assert told["kafka"] is told["keys"] is None
    shown = adapt.done("advise", "salts", "-p", 48, "--max-parallelism", 128, "--partitions", 60).out
    assert max(map(len, shown.splitlines())) <= 80
    assert "Kafka: partitions over consumers" in shown


def test_the_old_name_of_the_command_names_the_new_one(adapt):
    assert "write adapt advise salts" in adapt.refused(2, "advise", "keys", "-p", 50)


def test_idle_consumers_are_counted(adapt):
    (asked, *_) = advised(adapt, "-p", 50, "--partitions", 12)["kafka"]
    assert (asked["busiest"], asked["idle"]) == (1, 38)


def test_heavy_keys_get_their_salts(adapt, counts):
    told = advised(adapt, "counts.csv", "-p", 10, "--max-imbalance", "1.25")
    assert told["useful"][0]["useful_workers"] == pytest.approx(2.5)
    assert [(row["key"], row["salts"]) for row in told["keys"]] == [("amazon", 4), ("ebay", 2)]
    (named,) = advised(adapt, "counts.csv", "-p", 10, "--key", "k7", "--engine", "kafka")["keys"]
    assert (named["salts"], named["salts_hashed"], named["partials"]) == (1, 1, 1)


def test_another_engine_is_advised_in_its_own_units(adapt, counts):
    told = advised(adapt, "counts.csv", "-p", 10, "--engine", "spark")
    assert told["flink"] is None
    assert (told["own"][0]["shuffle_partitions"], told["own"][0]["busiest"]) == (200, 20)
    assert told["keys"][0]["salts"] == 4  # of 10 task slots, not of 200 partitions
    assert advised(adapt, "-p", 10, "--max-parallelism", 128)["own"] is None


def test_a_region_is_partitioned_by_the_columns_that_its_operators_share(adapt):
    line = ("-p", 8, "--operator", "count=user,page", "--operator", "sum=page, user,hour", "--operator", "top=user")
    assert [(row["operator"], row["region_keys"]) for row in advised(adapt, *line)["region"]] == [
        ("count", "user"),
        ("sum", "user"),
        ("top", "user"),
    ]
    assert "Partition the region by user." in adapt.done("advise", "salts", *line).out
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
    assert told in adapt.refused(code, "advise", "salts", *line.split())


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("spark")
def test_a_synthetic_trace_is_the_same_for_the_same_seed(adapt, here):
    line = ("generate", "zipf", "--rows", 5_000, "--keys", 100, "--seed")
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        assert json.loads(adapt.done(*line, seed, "-o", f"{name}.trace", "--json").out)["rows"] == 5_000
    a, b, c = (open_trace(here / f"{name}.trace").manifest for name in "abc")
    assert a.content_hash == b.content_hash != c.content_hash
    assert a.made.command == "adapt generate zipf --rows 5000 --keys 100 --seed 3 -o a.trace --json"
    assert (a.made.parameters["domain"], a.made.parameters["start"]) == (100, "2026-01-01T00:00:00Z")


@pytest.mark.usefixtures("spark")
def test_options_that_are_not_given_keep_the_defaults_of_the_generator(adapt, here):
    adapt.done("generate", "clicks", "--rows", 100, "-o", "clicks.trace")
    made = open_trace(here / "clicks.trace").manifest.made.parameters
    assert (made["generator"], made["domain"], made["exponent"], made["rate_per_s"]) == ("clicks", 20_000, 0.8, 0.05)
    distributions = (
        "--cost",
        "exponential(0.1ms)",
        "--bytes",
        "uniform(100B,2kB)",
        "--streams",
        "2:lag=5m",
    )
    adapt.done("generate", "self-similar", "--rows", 100, *distributions, "-o", "s.trace")
    made = open_trace(here / "s.trace").manifest.made.parameters
    assert (made["cost"], made["bytes"]) == ("exponential(100us)", "uniform(100B, 2000B)")
    assert made["lags"] == {"streams": 2, "lag_s": 300.0}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("zipf --rows 0", "--rows must be from 1 to"),
        (
            "self-similar --exponent 1",
            "does not take --exponent, an option of calls, clicks, packets, sales, zipf",
        ),
        ("clicks --cost constant(1us)", "clicks does not take --cost, an option of packets, self-similar, zipf"),
        ("zipf --bursts length=5s", "--bursts needs a value, X, before its keys"),
        ("zipf --drift 5", "--drift 5 needs a unit: 5s or 5h?"),
        ("zipf --bytes b", "--bytes 'b' is not a distribution"),
        ("packets --bias 1", "--bias must be from 0.5 to below 1 (got 1)"),
        ("packets --diurnal 0.5", "--bias cannot be combined with --diurnal"),
        ("zifp", "zipf"),
    ],
)
def test_options_that_a_generator_cannot_take_are_refused(adapt, here, line, told):
    assert told in adapt.refused(2, "generate", *line.split(), "-o", "x.trace")
    assert list(here.iterdir()) == []
