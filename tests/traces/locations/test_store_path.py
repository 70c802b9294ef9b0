"""A store answers as a disk does: names, sizes, ranges, and one sentence where it cannot."""

import errno
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.core.errors import BadInput, EnvironmentFailure
from adapt.traces.locations import failures
from adapt.traces.locations.arrow import arrow_sink, arrow_source
from adapt.traces.locations.failures import ATTEMPTS, Occupied, store_failures
from adapt.traces.locations.location import location
from tests.fault_proxy import Fault, first

NAMES = ("a.csv", "day=1/b.csv", "day=1/in/c.parquet", "day=2/b.csv", "sp ace#%20ü.csv")


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Requests are repeated without a wait."""
    monkeypatch.setattr(failures, "_FIRST_WAIT_S", 0.001)


@pytest.fixture
def both(bucket, tmp_path):
    """The same files in a folder of a disk and in one of a store."""
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        for place in (tmp_path, bucket / "x"):
            (place / name).write_bytes(name.encode())
    return tmp_path, bucket / "x"


def test_a_folder_of_a_store_is_listed_as_one_of_a_disk(both):
    disk, store = both

    def names(found, place):
        return sorted(str(each.relative_to(place)) for each in found)

    assert names(store.iterdir(), store) == names(disk.iterdir(), disk)
    assert names(store.rglob("*"), store) == sorted(NAMES)
    for pattern in ("*.csv", "day=*", "day=*/*.csv", "**/*.parquet", "day=1/in/*", "day=?/in", "none/*"):
        assert names(store.glob(pattern), store) == names(disk.glob(pattern), disk), pattern
    for name in ("a.csv", "day=1", "day=1/in", "day", "none", "sp ace#%20ü.csv"):
        expected = ((disk / name).is_file(), (disk / name).is_dir(), (disk / name).exists())
        assert ((store / name).is_file(), (store / name).is_dir(), (store / name).exists()) == expected, name


def test_an_object_is_read_as_a_file(bucket, tmp_path):
    data = "".join(f"line {at}\n" for at in range(1000))
    for place in (tmp_path / "x", bucket / "x"):
        place.write_bytes(data.encode())
        assert place.read_text() == data
        assert place.stat().st_size == len(data)
        with place.open("rb") as file:
            assert [next(file) for _ in range(3)] == [b"line 0\n", b"line 1\n", b"line 2\n"]
            file.seek(-7, 2)
            assert file.read() == b"ine 999\n"[-7:]
        with place.open("rb", 0) as raw:
            raw.seek(5)
            assert (raw.read(2), raw.tell(), raw.read(0)) == (b"0\n", 7, b"")
    (bucket / "x").unlink()
    with pytest.raises(FileNotFoundError) as missing:
        (bucket / "x").read_bytes()
    assert (missing.value.errno, missing.value.strerror) == (errno.ENOENT, "there is no such object")


def test_arrow_reads_columns_by_ranges(proxy, bucket):
    table = pa.table({"a": list(range(40_000)), "b": [f"text {at}" for at in range(40_000)]})
    with arrow_sink(bucket / "x.parquet") as path:
        pq.write_table(table, path, row_group_size=10_000, compression="none")
    proxy.requests.clear()
    assert pq.ParquetFile(arrow_source(bucket / "x.parquet")).read(["a"], use_threads=True).equals(table.select(["a"]))
    sizes = [request.fields["range"] for request in proxy.requests if request.reads]
    assert [request.method for request in proxy.requests].count("HEAD") == 1
    assert len(sizes) <= 1 + 4
    asked = sum(int(end) - int(start) + 1 for start, end in (each[6:].split("-") for each in sizes))
    assert asked < (bucket / "x.parquet").stat().st_size / 2 + (64 << 10)


@pytest.mark.parametrize("fault", Fault)
def test_a_request_is_repeated(proxy, bucket, caplog, fault):
    (bucket / "x").write_bytes(b"x" * 100)
    caplog.set_level("INFO", "adapt")
    proxy.failing = first(ATTEMPTS - 1, fault)
    assert (bucket / "x").read_bytes() == b"x" * 100
    if fault is not Fault.SLOW:
        assert f"attempt {ATTEMPTS} of {ATTEMPTS} in" in caplog.messages[-1]
        assert len(caplog.messages) == ATTEMPTS - 1
    proxy.failing = first(ATTEMPTS - 1, fault)
    (bucket / "y").upload(b"y" * 100, "")
    proxy.failing = lambda _: None
    assert (bucket / "y").read_bytes() == b"y" * 100


def test_of_two_writers_under_a_condition_one_fails(bucket):
    (bucket / "x").upload(b"1", "")
    with pytest.raises(Occupied):
        (bucket / "x").upload(b"2", "")
    version = (bucket / "x").found().version
    (bucket / "x").upload(b"3", version)
    with pytest.raises(Occupied):
        (bucket / "x").upload(b"4", version)
    assert (bucket / "x").read_bytes() == b"3"


def test_an_object_that_changes_or_vanishes_is_noticed(bucket):
    path = bucket / "x.parquet"
    for change, said in ((lambda: path.write_bytes(b"other"), "changed while it was read"), (path.unlink, "vanished")):
        with arrow_sink(path) as passing:
            pq.write_table(pa.table({"a": [1]}), passing)
        file = pq.ParquetFile(arrow_source(bucket / "x.parquet"))
        change()
        with pytest.raises(BadInput, match=f"x.parquet {said}"):
            file.read()


def test_another_bucket_is_named(bucket):
    near = location(f"{str(bucket)[:-2]}x/a")
    with pytest.raises(BadInput, match="there is no such bucket; did you mean 'bucket-"):
        near.exists()
    with pytest.raises(BadInput, match="there is no such bucket"):
        near.write_bytes(b"")


def test_a_server_that_is_not_there(bucket, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(EnvironmentFailure, match=r"error sending request.*check the network, AWS_ENDPOINT_URL"):
        location("s3://elsewhere/x").read_bytes()


class Answer(Exception):
    """What a store answers, as obstore raises it."""

    __module__ = "obstore.exceptions"


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (403, "<Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>KEY</AWSAccessKeyId>", "refuses the credentials"),
        (403, "<Code>AccessDenied</Code>", r"refuses the credentials \(AccessDenied\)"),
        (400, "<Code>ExpiredToken</Code><Token-0>HIDDEN</Token-0>", "the credentials have expired; renew them"),
        (400, "<Code>InvalidToken</Code>", r"refuses the credentials \(InvalidToken\)"),
        (403, "<Code>RequestTimeTooSkewed</Code>", "the clock of this machine differs from the store's; set it right"),
        (301, "<Code>PermanentRedirect</Code>", "the bucket is in another region; set AWS_REGION"),
        (
            400,
            "<Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region>",
            "the bucket is in region eu-west-1; add --storage-option region=eu-west-1",
        ),
        (418, "", "the store answered 418; check the location"),
    ],
)
def test_what_a_store_refuses_is_one_sentence(status, body, said):
    kind = type("GenericError", (Answer,), {"__module__": Answer.__module__})
    with pytest.raises(EnvironmentFailure, match=said) as refused, store_failures("s3://b/x"):
        raise kind(f"Generic S3 error - Server returned non-2xx status code: {status} What: <Error>{body}</Error>")
    assert "KEY<" not in str(refused.value)
    assert "HIDDEN" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_why_a_store_refuses_is_asked_for(bucket, monkeypatch):
    """HEAD is answered without a body."""
    texts = {"head": "status code: 400", "get": "status code: 400 <Code>ExpiredToken</Code>"}

    def refusing(text):
        def refuse(*_, **__):
            raise type("GenericError", (Answer,), {"__module__": Answer.__module__})(text)

        return refuse

    store = SimpleNamespace(**{name: refusing(text) for name, text in texts.items()})
    monkeypatch.setattr((bucket / "x").client, "_obstore", store)
    with pytest.raises(EnvironmentFailure, match="the credentials have expired"):
        (bucket / "x").is_file()
