"""What kcat printed is read back: any bytes where sizes are told, text where they are not."""

import json
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.engines.kafka.scheme import KafkaPartitioner
from adapt.traces.sources.formats.kcat import ENVELOPE, printed
from tests.traces.sources.kcat_printing import Message, envelope
from tests.traces.sources.kcat_printing import printed as as_kcat_prints

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.partitioner import DefaultPartitioner

SIZED = (r"%T %p %o %K %k %S %s\n", r"%t,%p,%o,%T,%K,%k%R%s", r"\x02%K:%S:%k%s %h;%p\x1e%T\x1d%o;")
PLAIN = (r"%T %p %o %k\t%s\n", r"%k\x1f%s\x1f%T%%%p,%o\x1e\x1e", r"[%p] at offset %o: key %k: %s of %T\n")

NUMBERS = {
    "partition": st.integers(0, 2**31 - 1),
    "offset": st.integers(0, 10**17),
    "ts": st.integers(0, 10**14),
    "topic": st.text("abc.-_", min_size=1),
}
ANY_BYTES = st.none() | st.binary(max_size=20)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\n\t\x1e\x1f:"), min_size=1).map(str.encode)


def read(form, data, wanted=None):
    data = np.frombuffer(data, np.uint8)
    records = form.records(data, at_end=True)
    parsed = form.parse(data, records, wanted or form.columns)
    columns = {name: column.to_pylist() for name, column in parsed.columns.items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return rows, [None] * len(records) if parsed.reasons is None else parsed.reasons.to_pylist()


@pytest.mark.parametrize("pattern", SIZED)
@given(messages=st.lists(st.builds(Message, ANY_BYTES, ANY_BYTES, **NUMBERS), max_size=6), cut=st.integers(0, 400))
def test_any_bytes_are_read_back_where_sizes_are_told(pattern, messages, cut):
    form = printed(pattern)
    data = b"".join(as_kcat_prints(message, pattern) for message in messages)
    rows, reasons = read(form, data, ["partition", "offset", "ts", "key_bytes", "payload_bytes"])
    assert reasons == [None] * len(messages)
    assert rows == [
        {"partition": sent.partition, "offset": sent.offset, "ts": sent.ts}
        | {"key_bytes": sent.key, "payload_bytes": sent.payload}
        for sent in messages
    ]
    first = form.records(np.frombuffer(data[:cut], np.uint8), at_end=False)
    rest = read(form, data[first.used :], ["offset"])[0]
    assert read(form, data[: first.used], ["offset"])[0] + rest == [{"offset": sent.offset} for sent in messages]


@pytest.mark.parametrize("pattern", PLAIN)
@given(messages=st.lists(st.builds(Message, st.none() | TEXT, st.none() | TEXT, **NUMBERS), max_size=6))
def test_text_is_read_back_where_the_pattern_tells_it_apart(pattern, messages):
    data = b"".join(as_kcat_prints(message, pattern) for message in messages)
    rows, reasons = read(printed(pattern), data)
    assert reasons == [None] * len(messages)
    assert rows == [
        {"partition": sent.partition, "offset": sent.offset, "ts": sent.ts}
        | {"key": sent.key and sent.key.decode(), "payload": sent.payload and sent.payload.decode()}
        for sent in messages
    ]


def test_a_key_with_spaces_is_told_from_the_number_behind_it():
    rows, _ = read(printed(r"%k %p %s\n"), b"ann b 3 x 4\n")
    assert rows == [{"key": "ann b", "partition": 3, "payload": "x 4"}]


def test_an_empty_key_is_null_unless_its_size_says_otherwise():
    assert [row["key"] for row in read(printed(r"%k %s\n"), b" x\n")[0]] == [None]
    told = b" 0 x\n -1 x\n"
    assert [row["key"] for row in read(printed(r"%k %K %s\n"), told)[0]] == ["", None]
    told = b"0  x\n-1  x\n"
    assert [row["key"] for row in read(printed(r"%K %k %s\n"), told)[0]] == ["", None]
    assert [row["key_size"] for row in read(printed(r"%K %k %s\n"), told)[0]] == [0, None]


def test_a_record_without_a_time_has_none():
    assert read(printed(r"%T %k\n"), b"-1 a\n")[0] == [{"ts": None, "key": "a"}]


def test_an_empty_payload_alone_on_its_line_is_a_record():
    assert read(printed(r"%s\n"), b"a\n\nb\n")[0] == [{"payload": "a"}, {"payload": None}, {"payload": "b"}]


@pytest.mark.parametrize("pattern", [r"%p %S %s\n", r"%p %k\n"])
def test_what_does_not_match_spoils_no_other_record(pattern):
    good = b"1 1 x\n"
    rows, reasons = read(printed(pattern), good + b"% Reached end of topic\n\n" + good + b"2 9 y\nz\n" + good)
    assert reasons[:4] == [None, "does not match --kcat-format", "does not match --kcat-format", None]
    assert [row["partition"] for row, reason in zip(rows, reasons, strict=True) if reason is None][:2] == [1, 1]
    assert reasons[-1] is None


def test_a_size_beyond_the_end_spoils_one_record():
    _, reasons = read(printed(r"%S %s\n"), b"1 a\n5000 b\n1 c\n999999999999999999999 d\n1 e\n")
    assert reasons == [None, "does not match --kcat-format", None, "does not match --kcat-format", None]


def test_the_last_record_may_lack_the_end_of_the_pattern():
    assert read(printed(r"%p %s\n"), b"1 a\n2 b")[0] == [
        {"partition": 1, "payload": "a"},
        {"partition": 2, "payload": "b"},
    ]
    assert read(printed(r"%S %s\n"), b"1 a\n1 b", ["payload"])[0] == [{"payload": "a"}, {"payload": "b"}]


def test_bytes_that_are_no_text_are_refused_only_where_text_is_asked_for():
    form, data = printed(r"%K %k %S %s\n"), b"1 a 1 \xff\n1 \xfe 1 b\n"
    assert read(form, data, ["key"])[1] == [None, "key is not UTF-8 text; use key_bytes"]
    assert read(form, data, ["key_bytes"]) == ([{"key_bytes": b"a"}, {"key_bytes": b"\xfe"}], [None, None])
    assert read(form, data, ["payload"])[1] == ["payload is not UTF-8 text; use payload_bytes", None]


@given(st.lists(st.binary(max_size=30), max_size=5))
@pytest.mark.parametrize("pattern", [*SIZED, *PLAIN])
def test_rubbish_makes_records_one_behind_the_other_and_nothing_worse(pattern, pieces):
    form = printed(pattern)
    good = as_kcat_prints(Message(b"k", b"p"), pattern)
    data = np.frombuffer(good.join(pieces), np.uint8)
    records = form.records(data, at_end=True)
    assert records.used == len(data)
    assert (records.starts <= records.ends).all()
    assert (records.ends[:-1] <= records.starts[1:]).all()
    if form.any_bytes:
        _, reasons = read(form, data.tobytes())
        assert len(reasons) == len(records)


def test_keys_lie_where_kafka_python_puts_them():
    partitions = 12
    keys = [f"user {at} ключ \N{GRINNING FACE}"[at % 5 :].encode() for at in range(1000)]
    cluster = SimpleNamespace(
        topics=lambda: {"clicks"},
        partitions_for_topic=lambda _: set(range(partitions)),
        available_partitions_for_topic=lambda _: set(range(partitions)),
    )
    put = [DefaultPartitioner().partition("clicks", key, key, b"", b"", cluster) for key in keys]
    pattern = r"%p %K %k %s\n"
    sent = (Message(key, b"{}", partition) for key, partition in zip(keys, put, strict=True))
    data = np.frombuffer(b"".join(as_kcat_prints(message, pattern) for message in sent), np.uint8)
    form = printed(pattern)
    columns = form.parse(data, form.records(data, at_end=True), ["key", "key_bytes", "partition"]).columns
    assert columns["partition"].to_pylist() == put
    for name in ("key", "key_bytes"):
        assert KafkaPartitioner(partitions).channels_of(columns[name]).tolist() == put


def test_envelopes_are_known_by_what_they_begin_with():
    assert ENVELOPE.match(envelope(Message(b"k", b"p")))
    assert ENVELOPE.match(envelope(Message(None, None, ts=-1, headers=[("a", "b")])))
    assert ENVELOPE.match(json.dumps({"topic": "t", "partition": 0, "offset": 1, "key": None}))
    assert not ENVELOPE.match(json.dumps({"topic": "t", "time": 0, "offset": 1, "key": None}))
