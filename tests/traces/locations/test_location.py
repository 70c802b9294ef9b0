"""Locations as paths and URIs, which show no secret."""

import pickle
from pathlib import Path, PurePosixPath

import pytest
from pyarrow import fs

from adapt.cli.main import settings_first
from adapt.core.errors import BadInput, EnvironmentFailure, UsageError
from adapt.traces.locations import clients
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.locations.failures import Occupied
from adapt.traces.locations.location import is_stored, location
from adapt.traces.locations.storage_options import StorageOptions, check_region, read_options


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("web.trace", "web.trace"),
        ("/data/web.trace", "/data/web.trace"),
        ("file:///data/a%20b.trace", "/data/a b.trace"),
        (Path("file:///data/web.trace"), "/data/web.trace"),
        ("C:web", "C:web"),
    ],
)
def test_a_path_stays_a_path(text, path):
    assert location(text) == Path(path)
    assert isinstance(location(text), Path)


def test_a_file_whose_name_looks_like_a_uri_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("topic:").mkdir()
    Path("topic:/x").write_text("")
    assert location("topic:/x") == Path("topic:/x")


def test_parts_of_a_uri_are_those_of_a_path():
    place = location("s3://bucket/a/web.trace")
    assert is_stored(place)
    assert (place.name, place.stem, place.suffix) == ("web.trace", "web", ".trace")
    assert str(place.parent / "x" / "y") == "s3://bucket/a/x/y"
    assert str(place.with_name("b.plan")) == "s3://bucket/a/b.plan"
    assert place.relative_to(place.parent) == PurePosixPath("web.trace")
    assert str(place.parent.parent.parent) == "s3://bucket/"
    assert sorted([place / "b", place / "a/c", place]) == [place, place / "a/c", place / "b"]


def test_options_go_to_tasks_and_are_not_shown():
    place = location("s3://bucket/x", StorageOptions(endpoint="http://hidden", profile="hidden"))
    sent = pickle.loads(pickle.dumps(place))
    assert sent == place
    assert sent._options == place._options
    assert "hidden" not in f"{place!r}{place}{place._options!r}{place / 'x'!r}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("s4://bucket/x", "s4:// is not a place of files; available: abfs, abfss, file, gs, hdfs, s3"),
        ("s3://", "s3:// needs a bucket, as in s3://BUCKET/NAME"),
        ("s3://KEY:HIDDEN@bucket/x", "a URI with credentials .s3.* is refused"),
    ],
)
def test_another_uri_is_refused(text, said):
    with pytest.raises(UsageError, match=said) as refused:
        location(text)
    assert "HIDDEN" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("secret_access_key=HIDDEN", "secrets come from the environment.*AWS_SECRET_ACCESS_KEY"),
        ("sas_token=HIDDEN", "takes no 'sas_token'"),
        ("endpoint=https://me:HIDDEN@host", "is refused"),
        ("region", "takes NAME=VALUE"),
        ("regoin=x", "has no 'regoin'; did you mean 'region'"),
        ("anonymous=yes", "must be true or false"),
        ("endpoint=host:1", "must be a URL such as https://HOST:PORT"),
    ],
)
def test_another_storage_option_is_refused(text, said):
    with pytest.raises(UsageError, match=said) as refused:
        read_options([text])
    assert "HIDDEN" not in str(refused.value)


def test_storage_options_stand_anywhere_in_the_command_line():
    line = "report s3://b/x --storage-option region=r -q -- --storage-option"
    first = "--storage-option region=r -q report s3://b/x -- --storage-option"
    assert settings_first(line.split()) == first.split()
    assert read_options(["region=r", "profile=p"]) == StorageOptions(region="r", profile="p")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "eu-wset-1",
            "AWS has no region 'eu-wset-1' (AWS_REGION or --storage-option region); did you mean 'eu-west-1'?",
        ),
        ("us-gov-eatst-1", "did you mean 'us-gov-east-1'?"),
        ("EU-CENTRAL1", "did you mean 'eu-central-1'?"),
        ("us-east-1a", "did you mean 'us-east-1'?"),
        ("nowhere", "; one is named as eu-west-1 is"),
    ],
)
def test_a_region_that_aws_cannot_have_is_refused(monkeypatch, name, said):
    for gone in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE"):
        monkeypatch.delenv(gone, raising=False)
    monkeypatch.setenv("AWS_REGION", name)
    with pytest.raises(EnvironmentFailure) as refused:
        location("s3://bucket-of-a-region/x").exists()
    assert str(refused.value).endswith(said)


@pytest.mark.parametrize("name", ["", "ap-southeast-7", "us-gov-west-1"])
def test_other_regions_may_exist(name):
    check_region(name)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A place whose file system is a folder of the disk."""
    below = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    monkeypatch.setattr(fs, "FileSystem", type("Stand", (), {"from_uri": staticmethod(lambda _: (below, "/"))}))
    clients.client_of.cache_clear()
    yield location("hdfs://host:9000/data")
    clients.client_of.cache_clear()


def test_objects_are_written_listed_read_and_removed(folder):
    for name in ("a", "in/b", "in/c"):
        (folder / name).write_bytes(name.encode())
    assert sorted(str(each.relative_to(folder)) for each in folder.rglob("*")) == ["a", "in/b", "in/c"]
    assert sorted(each.name for each in folder.iterdir()) == ["a", "in"]
    assert arrow_source(folder / "in" / "b").read() == b"in/b"
    assert ((folder / "in").is_dir(), (folder / "in").is_file(), (folder / "no").exists()) == (True, False, False)
    with pytest.raises(Occupied):
        (folder / "a").upload(b"2", "")
    version = (folder / "a").found().version
    (folder / "a").upload(b"longer", version)
    with pytest.raises(Occupied):
        (folder / "a").upload(b"3", version)
    (folder / "in").remove_below()
    assert [each.name for each in folder.rglob("*")] == ["a"]


def test_a_file_that_changes_is_noticed(folder):
    (folder / "a").write_bytes(b"12")
    file = (folder / "a").open("rb")
    (folder / "a").write_bytes(b"123")
    with pytest.raises(BadInput, match="changed while it was read"):
        file.read()
