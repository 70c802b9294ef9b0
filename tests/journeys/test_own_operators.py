"""Operators that users write, over real streams: their output equals a query of DuckDB; faults leave nothing behind."""

import bz2
import json
import re
import shlex
import shutil
import zipfile
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pytest

from tests.tiers import SOAK, soak
from tests.traces.small_traces import write_trace

EXAMPLES = Path(__file__).parents[2] / "examples" / "ordered"
ALL_FX = {"fxcm:nzdusd": 5, "oanda:nzdusd": 0, "fxcm:eurusd": 5, "oanda:eurusd": 0, "oanda:xauusd": 0}
"""Streams, and the hours that their clocks are behind UTC."""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    return tmp_path


def ran(adapt, trace, chain, *more):
    """The output of an example's chain by two workers, and the rows that it should equal."""
    done = adapt.done(
        *("replay", "ordered", trace, "--chain", f"{chain}.toml", "--workers", "1,2", "--backend", "threads"),
        *("--check", "2000", "--output", "out.parquet", "--force", "--format", "json", *more),
    )
    assert all(row["ordered"] is True for row in json.loads(done.out)["workers"])
    return duckdb.sql("from 'out.parquet'").fetchall()


def test_sessions_of_a_web_log_by_the_commands_of_the_example(adapt, spark, here):
    random = np.random.default_rng(1)
    moments = 1_700_000_000 + np.cumsum(random.integers(0, 120, 1_000))
    hosts, sizes = random.integers(0, 40, 1_000), random.integers(-200, 900, 1_000)  # "-" where no body was sent
    Path("access.log").write_text(
        "".join(
            f"10.0.0.{host} - - [{datetime.fromtimestamp(moment, UTC):%d/%b/%Y:%H:%M:%S %z}] "
            f'"GET / HTTP/1.1" 200 {max(size, 0) or "-"} "-" "-"\n'
            for moment, host, size in zip(moments, hosts, sizes, strict=True)
        )
    )
    for file in ("weblog_sessions.py", "weblog_sessions.toml"):
        adapt.done(*shlex.split(re.search("adapt (.*)", Path(file).read_text())[1]))
    sessions = duckdb.sql("from 'sessions.parquet'").fetchall()
    columns = {
        "key": [f"10.0.0.{host}" for host in hosts],
        "moment": moments * 1_000_000,
        "bytes": np.maximum(sizes, 0),
    }
    requests = pa.table(columns)
    expected = duckdb.sql(
        """
        with marked as (select *,
            coalesce(moment - lag(moment) over w > 1800000000, true) as begins
          from requests window w as (partition by key order by moment)),
        numbered as (select *, sum(begins::int) over (partition by key order by moment) as number from marked)
        select key, min(moment), max(moment), count(*), sum(bytes)::bigint from numbered group by key, number
        """
    ).fetchall()
    assert len(requests) > len(expected) > 100
    assert sorted(sessions) == sorted(expected)


def made_inputs(folder):
    """Small sources of the names and columns that the texts of the examples have."""
    random, start = np.random.default_rng(1), 1_700_000_000_000_000
    moments = range(start, start + 3 * 86_400_000_000, 600_000_000)
    numbers = random.integers(0, 120, len(moments)).tolist()
    both = list(zip(moments, numbers, strict=True))
    rows = {
        "quotes": [
            {"arrived": at, "quoted": at - 10**6 * n, "instrument": f"x{n % 2}", "bid": n / 7} for at, n in both
        ],
        "weather": [{"at": at, "airport": f"a{n % 2}", "wind": n / 5} for at, n in both],
        "flights": [{"at": at, "airport": f"a{n % 2}", "carrier": "c", "delay": n} for at, n in both],
    }
    for name, each in rows.items():
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in each))
    reviews = "".join(f"0,{n},5,{datetime.fromtimestamp(at // 10**6, UTC):%Y-%m-%d %H:%M}\n" for at, n in both)
    (folder / "anonreviews.csv.bz2").write_bytes(bz2.compress(f"reviewerId,vendorId,rating,date\n{reviews}".encode()))


@soak
@pytest.mark.parametrize(
    ("name", "output"),
    [("fx_bars", "bars.parquet"), ("flights_weather", "departures.parquet"), ("top_vendors", "top.parquet")],
)
def test_an_example_runs_by_the_commands_of_its_text(adapt, spark, here, name, output):
    made_inputs(here)
    for file in (f"{name}.py", f"{name}.toml"):
        for line in re.findall("adapt (.*)", Path(file).read_text()):
            adapt.done(*shlex.split(line))
    assert len(duckdb.sql(f"from '{output}'").fetchall()) > 10


def quotes(find, streams, days):
    parts = []
    for stream in streams:
        venue, instrument = stream.split(":")
        kind = "cfd" if instrument == "xauusd" else "forex"
        for file in sorted(find(f"fx-ticks/{kind}/{venue}/tick/{instrument}").glob("*_quote.zip"))[:days]:
            archive = zipfile.ZipFile(file)
            text = archive.read(archive.namelist()[0])
            table = pv.read_csv(BytesIO(text), pv.ReadOptions(column_names=["ms", "bid", "ask"]))
            midnight = int(datetime.strptime(file.name[:8], "%Y%m%d").replace(tzinfo=UTC).timestamp())
            ms = np.asarray(pc.cast(table["ms"], pa.float64()))
            quoted = midnight * 1_000_000 + ALL_FX[stream] * 3_600_000_000 + np.rint(ms * 1_000).astype(np.int64)
            # fxcm's quotes come from far away: each takes up to 100 s, the same in every run.
            delay = (quoted * 7_919 // 1_000) % 100_000_000 if venue == "fxcm" else 0
            parts.append((quoted + delay, quoted, np.asarray(table["bid"]), np.full(len(quoted), instrument)))
    arrived, quoted, bid, key = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(arrived, kind="stable")
    return {
        "ts": arrived[order],
        "quoted": pa.array(quoted[order]),
        "bid": pa.array(bid[order]),
        "key": pa.array(key[order]),
    }


def test_bars_of_quotes_of_which_some_are_late(adapt, real_traces, here):
    streams = list(ALL_FX) if SOAK else list(ALL_FX)[:2]
    table = quotes(real_traces, streams, 5 if SOAK else 1)
    write_trace(here / "fx.trace", {**table, "place": pa.array(np.arange(len(table["ts"])))}, row_group=1 << 20)
    bars = ran(adapt, "fx.trace", "fx_bars")
    duckdb.sql(
        """
        create or replace temp view due as
        with timed as (select *, epoch_us(ts) // 60000000 as arrived, quoted // 60000000 as minute
          from 'fx.trace/*.parquet'),
        minutes as (select arrived, lag(arrived) over (order by arrived) as before
          from (select distinct arrived from timed))
        select timed.*, before is not null and minute < before as late from timed join minutes using (arrived)
        """
    )
    expected = duckdb.sql(
        """
        select key, minute, arg_min(bid, (quoted, place)), max(bid), min(bid), arg_max(bid, (quoted, place)), count(*)
        from due where not late group by key, minute
        """
    ).fetchall()
    ((late,),) = duckdb.sql("select count(*) from due where late").fetchall()
    assert sorted(bar[:-1] for bar in bars) == sorted(expected)
    assert late > 1_000
    assert late - 1_000 < sum(bar[-1] for bar in bars) <= late  # those after the last bar are not told


def test_top_vendors_by_hour(adapt, real_traces, here):
    table = pv.read_csv(
        BytesIO(bz2.decompress(real_traces("reviews/anonreviews.csv.bz2").read_bytes())),
        convert_options=pv.ConvertOptions(
            include_columns=["vendorId", "date"],
            column_types={"vendorId": pa.int64(), "date": pa.timestamp("us")},
            timestamp_parsers=["%Y-%m-%d %H:%M"],
        ),
    ).rename_columns(["key", "ts"])
    table = table.set_column(1, "ts", pc.assume_timezone(table["ts"], "UTC"))
    table = table.take(pc.sort_indices(table, [("ts", "ascending")]))
    write_trace(here / "reviews.trace", table if SOAK else table.slice(0, 100_000), row_group=1 << 20)
    places = ran(adapt, "reviews.trace", "top_vendors")
    expected = duckdb.sql(
        """
        with counted as (select epoch_us(ts) // 3600000000 as hour, key, count(*) as reviews
          from 'reviews.trace/*.parquet' group by all)
        select hour, row_number() over w as place, key, reviews from counted
        window w as (partition by hour order by reviews desc, key) qualify place <= 3 order by hour, place
        """
    ).fetchall()
    assert len(expected) > 5_000
    assert places == expected


def flights_and_weather(find, months):
    """Departures by New York's local time, and weather by UTC, both in UTC and its order."""
    local = "make_timestamp(year::bigint, month, day, dep_time // 100 % 24, dep_time % 100, 0.0)"
    tables = (
        f"""
        select origin as key, carrier, dep_delay as delay,
          ({local} + to_days((dep_time // 2400)::int)) at time zone 'America/New_York' as ts
        from read_csv('{find("flights/flights.csv.gz")}', nullstr='NA')
        where dep_time is not null and month <= {months} order by ts, carrier, flight
        """,
        f"""
        select origin as key, wind_speed as wind, time_hour::timestamptz as ts
        from read_csv('{find("flights/weather.csv")}', nullstr='NA') where month <= {months} order by ts, key
        """,
    )
    for query in tables:
        table = duckdb.sql(query).to_arrow_table()
        yield in_utc(table)


def in_utc(table):
    return table.set_column(table.column_names.index("ts"), "ts", table["ts"].cast(pa.timestamp("us", "UTC")))


def test_departures_joined_with_weather_leave_by_two_outputs(adapt, real_traces, here):
    flights, weather = flights_and_weather(real_traces, 12 if SOAK else 1)
    write_trace(here / "flights.trace", flights, row_group=1 << 20)
    write_trace(here / "weather.trace", weather, row_group=1 << 20)
    rows = ran(adapt, "weather.trace", "flights_weather", "--input", "flights=flights.trace")
    names = [name for name, *_ in duckdb.sql("describe from 'out.parquet'").fetchall()]
    assert names == ["output", "key", "ts", "carrier", "delay", "wind", "day", "departures", "windy", "mean_delay"]
    assert left_over(
        "select key, ts, carrier, delay, wind from 'out.parquet' where output = 'late'",
        f"select key, ts, carrier, delay, coalesce(wind, 'nan') from ({JOINED}) where delay >= 60",
    ) == [0, 0]
    assert left_over(
        "select key, day, departures, windy, mean_delay from 'out.parquet' where output = 'days'",
        f"""select key, epoch_us(ts) // 86400000000 as day, count(*), count(*) filter (wind >= 20), avg(delay)
        from ({JOINED}) group by key, day""",
    ) == [0, 0]
    assert len(rows) > 1_000
    times = duckdb.sql("select coalesce(epoch_us(ts), 86400000000 * (day + 1)) from 'out.parquet'").fetchall()
    assert times == sorted(times)  # the outputs leave in the order of their events
    both = duckdb.sql(
        """
        select *, 'flights' as kind from 'flights.trace/*.parquet' union all by name
        select *, 'weather' as kind from 'weather.trace/*.parquet' order by ts
        """
    ).to_arrow_table()
    write_trace(here / "both.trace", in_utc(both), row_group=1 << 20)
    (here / "one.toml").write_text('input_column = "kind"\n' + (here / "flights_weather.toml").read_text())
    shutil.copy("out.parquet", "two.parquet")
    ran(adapt, "both.trace", "one")
    assert (here / "out.parquet").read_bytes() == (here / "two.parquet").read_bytes()


JOINED = """
    select f.*, w.wind
    from 'flights.trace/*.parquet' f asof join 'weather.trace/*.parquet' w on f.key = w.key and f.ts >= w.ts
    where f.ts - w.ts <= interval 2 hour
"""


def left_over(one, other):
    """How many rows of each of two queries are not in the other."""
    return [
        duckdb.sql(f"select count(*) from (({each}) except all ({but}))").fetchall()[0][0]
        for each, but in ((one, other), (other, one))
    ]


SLOW = """
from collections.abc import Iterator
from typing import NamedTuple

class Out(NamedTuple):
    value: float

def burn(ts) -> Iterator[Out]:
    value = float(ts)
    for number in range({turns}):
        value = (value * 1.0000001) % 1e9
    for _ in range({outputs}):
        yield Out(value)
"""


def some_trace(folder, rows=20_000):
    write_trace(folder / "x.trace", {"ts": np.arange(rows), "key": pa.array([f"k{n % 9}" for n in range(rows)])})


def command(here, turns, outputs, rows=20_000):
    some_trace(here, rows)
    (here / "own.py").write_text(SLOW.format(turns=turns, outputs=outputs))
    (here / "own.toml").write_text('[[operator]]\nname = "burn"\nkind = "stateless"\nfunction = "own:burn"\n')
    line = "replay ordered x.trace --chain own.toml --workers 2 --backend threads --check 0 --output out.parquet"
    return line.split()


def left(here):
    return sorted(path.name for path in here.iterdir() if "out.parquet" in path.name)


def test_an_exception_in_an_operator_leaves_nothing(adapt, here):
    line = command(here, 1, 1)
    (here / "own.py").write_text(SLOW.format(turns=1, outputs=1).replace("float(ts)", "1.0 / (ts - 15_000)"))
    told = adapt.refused(3, *line)
    assert "operator 'burn': own:burn, line 9 failed on the row ts=15000: ZeroDivisionError" in told
    assert left(here) == []
