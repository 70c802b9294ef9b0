"""Real traces through the simulated stage by the real command: static against policies of Flux."""

import json
from collections import Counter

import mmh3
import pytest

from adapt.cli.main import run
from tests.tiers import soak

WORKERS, PARTITIONS = 8, 64

pytestmark = pytest.mark.usefixtures("spark")


def replayed(adapt, trace, *line):
    said = adapt.done("replay", "flux", trace, "--workers", WORKERS, *line, "--format", "json")
    document = json.loads(said.out)
    return document, {row["case"]: row for row in document["cases"]}


@pytest.fixture
def weblog(adapt, real_traces, tmp_path):
    log = real_traces("weblog-2015/apache_logs")
    adapt.done("ingest", log, "--format", "clf", "--key", "host", "--bytes", "bytes", "-o", tmp_path / "web.trace")
    return log, tmp_path / "web.trace"


def test_weblog_by_host_on_eight_workers_of_which_one_is_loaded(adapt, weblog):
    """At a rate that the workers could do together, but not with one that is loaded and holds its share."""
    log, trace = weblog
    line = "--speedup 45000 --service-time 3ms --producers buffer=96 --state rows --load 3@0 --policy load"
    document, cases = replayed(adapt, trace, *line.split(), "--policy", "load-several")
    assert [case["processed"] for case in cases.values()] == [9_999] * 3
    hosts = Counter(text.split(" ", 1)[0] for text in log.read_text(errors="replace").splitlines())
    at_worker = Counter()
    for host, rows in hosts.items():
        high, low = mmh3.hash64(host, signed=False)
        at_worker[(high * 2**64 + low) % (WORKERS * PARTITIONS) // PARTITIONS] += rows
    assert document["summary"]["busiest_worker"] == pytest.approx(max(at_worker.values()) / 9_999, abs=1e-3)
    assert cases["static"]["moves"] == 0
    assert all(
        cases[policy]["capacity_share"] > 1.4 * cases["static"]["capacity_share"]
        for policy in cases
        if policy != "static"
    )
    assert document["summary"]["verdict"].startswith("Use load")


@soak
def test_reviews_by_vendor_until_the_workers_are_full(adapt, real_traces, tmp_path):
    trace = tmp_path / "reviews.trace"
    assert (
        run(["ingest", str(real_traces("reviews/anonreviews.csv.bz2")), "--key", "vendorId", "-o", str(trace), "-q"])
        == 0
    )
    static_shares = []
    for speedup in (5_000_000, 20_000_000, 60_000_000):
        document, cases = replayed(adapt, trace, "--speedup", speedup, "--policy", "load-several")
        assert [case["processed"] for case in cases.values()] == [578_805] * 2
        static_shares.append(cases["static"]["capacity_share"])
        assert cases["load-several"]["capacity_share"] > static_shares[-1] - 0.01
    assert static_shares[0] > 0.95 > static_shares[2]
    assert document["summary"]["static_full_at"] < 60_000_000
    document, cases = replayed(adapt, trace, "--arrivals", "saturate", "--load", "3@1s", "--policy", "load")
    assert cases["load"]["capacity_share"] > 1.5 * cases["static"]["capacity_share"]


@soak
def test_fx_ticks_by_instrument_and_bid_from_speed_up_200_until_the_workers_are_full(adapt, real_traces, tmp_path):
    instrument = "regexp_extract(_path, 'tick/([a-z]+)/', 1)"
    venue = "regexp_extract(_path, '([a-z]+)/tick/', 1)"
    midnight = "to_timestamp(regexp_extract(_path, '([0-9]{8})_quote', 1), 'yyyyMMdd')"
    clock = f"if({venue} = 'fxcm', 5 * 3600000, 0)"
    time = f"timestamp_micros(unix_micros({midnight}) + bigint(round((double(_c0) + {clock}) * 1000)))"
    trace = tmp_path / "fx.trace"
    source = ["ingest", real_traces("fx-ticks"), "--format", "csv", "--delimiter", ",", "--no-header"]
    adapt.done(*source, "--key", f"concat({instrument}, ' ', _c1)", "--time", time, "-o", trace)
    slow, slow_cases = replayed(adapt, trace, "--speedup", 200, "--duration", "200s", "--policy", "load-guarded")
    assert slow_cases["static"]["capacity_share"] > 0.99
    assert "keeps up" in slow["summary"]["verdict"]
    full, full_cases = replayed(adapt, trace, "--speedup", 60_000, "--policy", "load-guarded")
    assert full_cases["static"]["capacity_share"] < 0.98
    assert 25_000 < full["summary"]["static_full_at"] < full["summary"]["best_full_at"] < 40_000
    _, cases = replayed(adapt, trace, "--speedup", 20_000, "--load", "3@5s", "--policy", "load-several")
    assert cases["static"]["capacity_share"] < 0.8
    assert cases["load-several"]["capacity_share"] > 0.95
    assert cases["load-several"]["latency_p99"] < cases["static"]["latency_p99"] / 4
