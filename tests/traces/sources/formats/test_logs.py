"""Known logs and dumps: recognized by their lines, each field as it is written."""

import pytest

from adapt.core.errors import UsageError
from adapt.traces.sources.names import FormatName
from adapt.traces.sources.reading.files import source_files
from adapt.traces.sources.sniff import ReadOptions, recognize
from adapt.traces.sources.source import Source
from adapt.traces.spark.progress import silent

LOGS = {
    "python": (
        "2024-03-01 10:00:00,123 - app.users - WARNING - user=a",
        {"time": "2024-03-01 10:00:00,123", "logger": "app.users", "level": "WARNING", "message": "user=a"},
    ),
    "logback": (
        "2024-03-01 10:00:00.123 [main] INFO  com.example.Users - user=a",
        {"time": "2024-03-01 10:00:00.123", "thread": "main", "logger": "com.example.Users", "message": "user=a"},
    ),
    "log4j": (
        "2024-03-01 10:00:00,123 INFO [main] org.example.Master: Created",
        {"time": "2024-03-01 10:00:00,123", "thread": "main", "logger": "org.example.Master", "message": "Created"},
    ),
    "log4j of Spark": (
        "24/03/01 10:00:00 INFO TaskSetManager: Starting task 3.0",
        {"time": "24/03/01 10:00:00", "thread": None, "logger": "TaskSetManager", "message": "Starting task 3.0"},
    ),
    "hdfs": (
        "240301 100000 148 INFO dfs.DataNode$Responder: block 7 ends",
        {"time": "240301 100000", "pid": "148", "logger": "dfs.DataNode$Responder", "message": "block 7 ends"},
    ),
    "bgl": (
        "- 1117838570 2005.06.03 R02-J12 2005-06-03-15.42.50.675872 R02-J12 RAS KERNEL INFO parity error corrected",
        {"label": None, "node": "R02-J12", "time": "2005-06-03-15.42.50.675872", "message": "parity error corrected"},
    ),
    "android": (
        "03-17 16:13:38.811  1702  2395 D WindowManager: opening app",
        {"time": "03-17 16:13:38.811", "pid": "1702", "level": "D", "tag": "WindowManager", "message": "opening app"},
    ),
    "syslog (RFC 5424)": (
        '<165>1 2024-03-01T10:00:00.003Z host.example evntslog - ID47 [ex@1 iut="3"] An event',
        {"time": "2024-03-01T10:00:00.003Z", "host": "host.example", "pid": None, "message": "An event"},
    ),
    "syslog": (
        "Mar  1 10:00:00 combo sshd[19939]: check pass; user unknown",
        {"priority": "", "time": "Mar  1 10:00:00", "host": "combo", "app": "sshd", "pid": "19939"},
    ),
    "apache errors": (
        "[Fri Mar 01 10:00:00 2024] [error] [client 10.0.0.1] File does not exist",
        {"time": "Fri Mar 01 10:00:00 2024", "level": "error", "client": "10.0.0.1", "message": "File does not exist"},
    ),
    "envoy": (
        '[2024-03-01T10:00:00.310Z] "POST /api HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "nsq" "cc21" "host" "tcp://a:80"',
        {
            "time": "2024-03-01T10:00:00.310Z",
            "path": "/api",
            "bytes": "0",
            "duration": "226",
            "forwarded": "10.0.35.28",
        },
    ),
    "squid": (
        "1709287200.586    921 10.0.0.68 TCP_MISS/200 507 POST http://a.example/ - DIRECT/10.0.0.1 text/html",
        {"time": "1709287200.586", "client": "10.0.0.68", "bytes": "507", "user": None, "url": "http://a.example/"},
    ),
    "redis": (
        '1709287200.877697 [0 127.0.0.1:60866] "get" "user:1" "x"',
        {"time": "1709287200.877697", "command": "get", "key": "user:1"},
    ),
    "confluent": (
        "Timestamp:1709287200560 Partition:3 Offset:0\ta\tx",
        {"ts": "1709287200560", "partition": "3", "offset": "0", "key": "a", "value": "x"},
    ),
    "fields between ::": ("1::1193::5::978300760", {"_c0": "1", "_c1": "1193", "_c3": "978300760"}),
}


def held(path):
    """The rows of a file, its guesses and what is known of its columns."""
    files = source_files([str(path)])
    found = recognize(files, ReadOptions())
    source = Source(None, files, found.form, path.parent / "staging", silent, found.by_file, 1 << 20)
    return source.held(source.columns).to_pylist(), found.guesses, source


@pytest.mark.parametrize("name", LOGS)
def test_a_log_is_recognized_by_its_lines(tmp_path, name):
    line, fields = LOGS[name]
    path = tmp_path / "a.log"
    path.write_text(f"{line}\n{line}\nanother line\n")
    if "::" in line:
        path.write_text(f"{line}\n{line}\n")
    rows, guesses, _ = held(path)
    assert guesses[0] == "format text"
    assert guesses[1].startswith(f"lines of {name.removesuffix(' of Spark')}, fields ")
    assert {each: rows[0][each] for each in fields} == fields
    assert [bool(row["_reason"]) for row in rows] == [False, False, True][: len(rows)]


def test_a_dump_of_log_segments_is_its_records(tmp_path):
    path = tmp_path / "dump.txt"
    path.write_text(
        "Dumping /logs/t-0/00000000000000000000.log\nStarting offset: 0\n"
        "baseOffset: 0 lastOffset: 1 count: 2 CreateTime: 1665506597828 isvalid: true\n"
        "| offset: 0 CreateTime: 1665506597822 keySize: 1 valueSize: 1 sequence: 0 headerKeys: [] key: a payload: 2\n"
        "| offset: 1 CreateTime: 1665506597827 keySize: 4 valueSize: 9 sequence: 1 headerKeys: [] key: away\n"
    )
    rows, _, source = held(path)
    assert [(row["_line"], row["key"], row["bytes"], row["ts"]) for row in rows] == [
        (4, "a", "1", "1665506597822"),
        (5, "away", "9", "1665506597827"),
    ]
    assert source.times["ts"] == "epoch_ms"


COMMENTED = {
    "Zeek": (
        "#separator \\x09\n#path\tconn\n#fields\tts\tid.orig_h\torig_bytes\n#types\ttime\taddr\tcount\n"
        "1709287200.5\t10.0.0.1\t-\n1709287201.5\t10.0.0.2\t12\n#close\t2024-03-01\n",
        [("1709287200.5", "10.0.0.1", None), ("1709287201.5", "10.0.0.2", "12")],
    ),
    "W3C": (
        "#Software: IIS\n#Fields: date time cs-uri-stem\n2024-03-01 10:00:00 /a\n2024-03-01 10:00:01 /b\n",
        [("2024-03-01", "10:00:00", "/a"), ("2024-03-01", "10:00:01", "/b")],
    ),
    "header behind #": ("# by x\n#ts,user,n\n1,a,2\n# more\n3,b,4\n", [("1", "a", "2"), ("3", "b", "4")]),
    "comments": ("# by x, in May, by hand\nts,user,n\n1,a,2\n3,b,4\n", [("1", "a", "2"), ("3", "b", "4")]),
    "Excel": ("sep=;\nts;user;n\n1;a;2\n3;b;4\n", [("1", "a", "2"), ("3", "b", "4")]),
    "single quotes": ("ts,user,n\n1,'a,b','2'\n3,'b','4'\n", [("1", "a,b", "2"), ("3", "b", "4")]),
    "index of pandas": (",ts,user\n0,1,a\n1,3,b\n", [("0", "1", "a"), ("1", "3", "b")]),
    "equal names": ("ts,n,n\n1,5,2\n3,6,4\n", [("1", "5", "2"), ("3", "6", "4")]),
    "trailing delimiter": ("ts,user,n,\n1,a,2,\n3,b,4,\n", [("1", "a", "2", ""), ("3", "b", "4", "")]),
}


@pytest.mark.parametrize("name", COMMENTED)
def test_comments_odd_headers_and_quotes_are_no_rows(tmp_path, name):
    text, expected = COMMENTED[name]
    path = tmp_path / "a.log"
    path.write_text(text)
    rows, _, source = held(path)
    assert [tuple(row[column] for column in source.columns) for row in rows] == expected
    assert not any(row["_reason"] for row in rows)
    assert not any(column.startswith("_c") for column in source.columns) or name in (
        "index of pandas",
        "trailing delimiter",
    )


def test_text_that_is_no_known_log_needs_a_pattern(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("what is this\n")
    with pytest.raises(UsageError, match="--source-format text needs --pattern"):
        recognize(source_files([str(path)]), ReadOptions(FormatName.TEXT))
