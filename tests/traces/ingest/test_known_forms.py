"""Ways of writing a time, and known logs, as they come: read by guess, without Java, next to pandas and DuckDB."""

import warnings
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from adapt.core.errors import BadInput
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.ingest.sieve import layout_of, plain_epochs, plain_format, plain_times
from adapt.traces.ingest.times import EPOCH_UNITS
from adapt.traces.sources.reading.files import source_files
from adapt.traces.sources.sniff import ReadOptions, recognize
from adapt.traces.sources.source import beginning

WAYS = {
    "2024-03-14T10:05:03.250000": (
        *("2024-03-14 10:05:03.250", "2024-03-14T10:05:03.250000Z", "2024-03-14T10:05:03.250000000Z"),
        *("2024-03-14 10:05:03,250", "2024-03-14T10:05:03,250", "[2024-03-14 10:05:03,250]"),
        *("2024/03/14 10:05:03.250000", "[Thu Mar 14 10:05:03.250000 2024]", "2024-03-14-10.05.03.250000"),
        *("2024-03-14 10:05:03.25+00", "1710410703250", "1710410703250000", "1710410703250000000", "1710410703.25"),
    ),
    "2024-03-14T10:05:03": (
        *("2024-03-14T10:05:03", "2024-03-14 10:05:03", "2024-03-14T10:05:03Z", "2024-03-14T12:05:03+02:00"),
        *("2024-03-14T12:05:03+0200", "2024-03-14 12:05:03 +0200", "2024-03-14 12:05:03+02"),
        *("2024-03-14 10:05:03 UTC", "2024-03-14T10:05:03Z[UTC]", "20240314T100503Z", "20240314100503"),
        *("20240314 100503", "2024/03/14 10:05:03", "2024/3/14 10:05:03", "03/14/2024 10:05:03"),
        *("03/14/2024 10:05:03 AM", "14/03/2024 10:05:03", "14.03.2024 10:05:03", "14-03-2024 10:05:03"),
        *("14/Mar/2024:10:05:03 +0000", "14-Mar-2024 10:05:03", "Thu, 14 Mar 2024 10:05:03 +0000"),
        *("Thu, 14 Mar 2024 10:05:03 GMT", "Thu Mar 14 10:05:03 2024", "Thu Mar 14 10:05:03 +0000 2024"),
        *("Thu Mar 14 10:05:03 UTC 2024", "14 Mar 2024 10:05:03", "Mar 14, 2024 10:05:03"),
        *("Mar 14, 2024 10:05:03 AM", "1710410703", "24/03/14 10:05:03", "240314 100503"),
    ),
    "2024-03-14T10:05:00": (
        *("2024-03-14 10:05", "2024-03-14T10:05Z", "2024.03.14 10:05", "3/14/2024 10:05", "3/14/24 10:05"),
        *("Mar 14 2024 10:05AM", "3/14/2024 10:05 AM"),
    ),
    "2024-03-14T00:00:00": (
        *("2024-03-14", "20240314", "2024/03/14", "03/14/2024", "14.03.2024", "14-MAR-24", "March 14, 2024"),
        "14 March 2024",
    ),
}
"""Texts by the time that they mean."""

ASKED = {
    "Mar 14 10:05:03": "--time-format syslog:2024",
    "03-14 10:05:03.250": "concat('2024-', t)",
    "03.14 10:05:03": "concat('2024.', t)",
    "45365.42017": "for Excel days",
}
"""Texts that need an option, and what the refusal says of it."""


def ours(text: str, stated: str = "") -> tuple[str, str]:
    """The time of a column of such texts, and its format."""
    texts = pa.array([text] * 3)
    form = plain_format(Mapping("", "t", time_format=stated), ["t"], texts)
    if form.name in EPOCH_UNITS:
        times, plain = plain_epochs(texts, EPOCH_UNITS[form.name])
    else:
        times, plain = plain_times(texts, layout_of(form, "UTC"), zoned=False)
    assert plain.all(), form
    return (datetime(1970, 1, 1) + timedelta(microseconds=int(times[0]))).isoformat(), form.name


def of_pandas(text: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = pd.to_datetime(pd.Series([text] * 3)).iloc[0]
        except (ValueError, TypeError):
            return "-"
    return (found.tz_convert("UTC").tz_localize(None) if found.tzinfo else found).isoformat()


def of_duckdb(text: str, path: Path) -> str:
    """What DuckDB's reader of CSV makes of a column of such texts."""
    path.write_text("t|k\n" + f"{text}|a\n" * 30)
    found = duckdb.sql(f"SELECT t FROM read_csv('{path}', delim='|', header=true)").fetchall()[0][0]
    if not isinstance(found, date):
        return "-"
    moment = found if isinstance(found, datetime) else datetime(found.year, found.month, found.day)
    return (moment.astimezone(UTC) if moment.tzinfo else moment).replace(tzinfo=None).isoformat()


def test_every_way_of_writing_a_time_is_read(tmp_path):
    means = {text: truth for truth, texts in WAYS.items() for text in texts}
    wrong = []
    for text, truth in means.items():
        found, form = ours(text)
        print(f"{text:36} {found:28} {of_pandas(text):28} {of_duckdb(text, tmp_path / 'times.csv')}")
        wrong += [] if found == truth == ours(text, form)[0] else [(text, found)]
    assert (wrong, len(means)) == ([], 61)


@pytest.mark.parametrize(("text", "told"), ASKED.items())
def test_a_time_that_needs_an_option_is_refused_with_it(text, told):
    with pytest.raises(BadInput) as refused:
        ours(text)
    assert told in str(refused.value)


LOGS = {
    "hdfs": ("240314 100503 14{} INFO dfs.DataNode$Receiver: Receiving block blk_{}", "2024-03-14T10:05:03"),
    "log4j": ("2024-03-14 10:05:03,250 WARN [IPC Server handler {}] org.example.ipc.Server: Retry {}", ".250000"),
    "log4j of Spark": ("24/03/14 10:05:03 INFO executor.Executor: Running task {}.0 in stage {}", "10:05:03"),
    "log4j of ZooKeeper": ("2024-03-14 10:05:03,250 - INFO  [QuorumPeer[myid={}]/0:0:2181:Election@7] - New {}", ".25"),
    "bgl": ("- 1710410703 2024.03.14 R02-N{} 2024-03-14-10.05.03.250000 R02-N{} RAS KERNEL INFO parity error", ".25"),
    "hpc": ("1346{} node-24{} unix.hw state_change.unavailable 1710410703 1 Component is down, again", "10:05:03"),
    "thunderbird": ("- 1710410703 2024.03.14 dn{} Mar 14 10:05:03 dn2/dn2 crond[29{}]: session, closed", "10:05:03"),
    "cbs": ("2024-03-14 10:05:03, Info                  CBS    Loaded package {}, of {}", "10:05:03"),
    "syslog": ("Mar 14 10:05:03 combo sshd(pam_unix)[19{}]: authentication failure; rhost=10.0.0.{}", "syslog:2024"),
    "syslog of OpenSSH": ("Mar 14 10:05:03 LabA sshd[24{}]: Invalid user u{}", "syslog:2024"),
    "syslog of macOS": ("Mar  4 10:05:03 host-{} kernel[0]: Wake reason {}", "syslog:2024"),
    "android": ("03-14 10:05:03.250  170{}  2395 D WindowManager: freezing display {}", "concat('2024-', time)"),
    "health app": ("20240314-10:5:3:25{}|Step_LSC|30002|onStandStepChanged {}", "2024-03-14T10:05:03"),
    "apache errors": ("[Thu Mar 14 10:05:03 2024] [notice] init() ok /etc/{}/{}.conf", "10:05:03"),
    "proxifier": ("[03.14 10:05:03] chrome.exe *64 - host{}.example.com:443 close, {} bytes", "concat('2024.', time)"),
    "openstack": ("api.log.1 2024-03-14 10:05:03.250 257{} INFO nova.wsgi [req-{} a] GET status: 200", ".25"),
}
"""A line of each log, and its time, or what the refusal says of it."""


@pytest.mark.parametrize("name", LOGS)
def test_known_logs_are_read(tmp_path, name):
    line, told = LOGS[name]
    (tmp_path / "some.log").write_text("".join(line.format(at, at) + "\n" for at in range(3)))
    files = source_files([str(tmp_path / "some.log")])
    found = recognize(files, ReadOptions())
    assert f"lines of {name.partition(' of ')[0]}, fields" in " ".join(found.guesses)
    rows = beginning(files[0], found.form, 10)
    assert len(rows) == 3
    text = rows["time"][0].as_py()
    if " " in told or told.startswith(("syslog", "concat")):
        with pytest.raises(BadInput, match="no year") as refused:
            ours(text)
        assert told.replace("time", "t") in str(refused.value)
    else:
        assert told in ours(text)[0]
