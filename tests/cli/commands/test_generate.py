"""`adapt generate`: the same trace for the same options, and each generator has its own options."""

import json

import pytest

from adapt.traces.store.trace import open_trace


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
