"""The client of HDFS, over a folder: no server of HDFS runs here."""

import pytest
from pyarrow import fs

from adapt.core.errors import BadInput
from adapt.traces.locations import clients
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.locations.failures import Occupied
from adapt.traces.locations.location import location


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
