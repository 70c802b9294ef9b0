"""Values that would take hours or all memory are refused with the number, before work starts."""

import warnings
from pathlib import Path

from tests.any_trace import VISITS, two_halves

FLUX, ELASTIC = "replay flux x.trace --workers 4", "replay elastic x.trace --pool 4"
LIVE = "replay repartition x.trace --channels 4 --period 1s --live"
COMPARE = "replay compare x.trace --channels 4 --seeds 1 --jobs 1 --scenario flux-load"
PERIODS, SAMPLES = "control periods, and at most 500,000", "samples, and at most 50,000"


COSTLY = [
    (f"{FLUX} --network latency=1h", PERIODS),
    (f"{FLUX} --network bandwidth=1bps", PERIODS),
    (f"{FLUX} --state 10000 --network state-bandwidth-total=1bps", PERIODS),
    (f"{FLUX} --state 1000000000000", PERIODS),
    (f"{FLUX} --service-time 100h", PERIODS),
    (f"{FLUX} --slow 1@0s:0.0001%", PERIODS),
    (f"{FLUX} --interval 1ns", SAMPLES),
    (f"{FLUX} --interval 1000s", PERIODS),
    (f"{FLUX} --interval 1ns --policy none", "in all are simulated; increase --interval or --speedup, or set"),
    (f"{FLUX} --interval 1ns --arrivals saturate", "in all are simulated; increase --interval, or set --duration"),
    (f"{FLUX} --producers row:buffer=100000000", "take 11.9 GiB, and at most 4 GiB"),
    (f"{FLUX} --network connection-buffer=100000000", "take 59.6 GiB, and at most 4 GiB"),
    (f"{FLUX} --seed -1", "--seed must be from 0 to 2^63 - 1 (got -1)"),
    (f"{FLUX} --policy load:min-imbalance=inf", "must be finite and at least 1 (got inf)"),
    (f"{FLUX} --policy memory:min-imbalance=inf --memory 1MB", "must be finite and at least 1 (got inf)"),
    (f"{FLUX} --stages late.toml", PERIODS),
    (f"{ELASTIC} --network latency=1h", PERIODS),
    (f"{ELASTIC} --state 10000 --network state-bandwidth-total=1bps", PERIODS),
    (f"{ELASTIC} --interval 1ns", SAMPLES),
    (f"{ELASTIC} --interval 1000s", PERIODS),
    (f"{ELASTIC} --offered 1e9", "smaller than the 10000000000 workers"),
    (f"{ELASTIC} --seed -1", "--seed must be from 0 to 2^63 - 1 (got -1)"),
    (f"{LIVE} --network latency=1h", "14,400 steps of 1s, and at most 10,000"),
    (f"{LIVE} --network state-bandwidth-total=1bps", "steps of 1s, and at most 10,000"),
    (f"{COMPARE} --network latency=1h", PERIODS),
    (f"{COMPARE} --state 10000 --network state-bandwidth-total=1bps", PERIODS),
    (f"{COMPARE} --interval 1ns", SAMPLES),
    (f"{COMPARE} --interval 1000s", PERIODS),
    ("replay fit x.trace --network scaled.toml", "200,000,000 tuples of 200 rows, and at most 20,000,000"),
    ("replay ordered x.trace --chain chain.toml --seed -1", "--seed must be at least 0 (got '-1')"),
    ("partition build x.trace --channels 100000", "at most 10,000,000 replicas in all (got 100,000 channels"),
    ("verdict x.trace --channels 100000", "at most 10,000,000 replicas in all (got 100,000 channels"),
    ("partition compare x.trace --channels 100000", "at most 10,000,000 replicas in all"),
]


def test_what_would_take_too_long_is_refused_with_the_number(adapt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    adapt.done(*"generate zipf --rows 200 --keys 30 --rate 100 --cost constant(1ms) -o x.trace".split())
    Path("chain.toml").write_text(VISITS)
    stages = '[[stage]]\nname = "a"\n[[stage]]\nname = "b"\nquery = "q"\ninputs = ["a"]\n'
    Path("late.toml").write_text(f'{stages}[[query]]\nname = "q"\narrive = "1000000h"\n')
    Path("scaled.toml").write_text(two_halves("1s", 0.001).replace('"some"\n', '"some"\nscale = 1e6\n', 1))
    for line, sentence in COSTLY:
        said = adapt(*line.split())
        assert said.code == 2, line
        assert sentence in said.err.splitlines()[-1], line
        assert "Warning" not in said.err, line


def test_rows_that_arrive_after_all_times_end_in_an_answer(adapt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    adapt.done(*"generate zipf --rows 9 --keys 3 --rate 100 -o x.trace".split())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapt.done(*f"{LIVE} --speedup 1e-300".split())
