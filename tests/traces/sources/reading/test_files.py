"""Source files by name, packed or piped in."""

import bz2
import gzip
import io
import lzma
import os
import sys
import zipfile

import pyarrow as pa
import pytest
import xxhash

from adapt.core.errors import BadInput, UsageError
from adapt.traces.sources.reading.files import Container, head_of, source_files, unpacked


def put(folder, *names, content=b"x\n"):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def zstd(content):
    """A zstd frame with the checksum of its content, as the zstd command writes them."""
    frame = bytearray(pa.Codec("zstd").compress(content, asbytes=True))
    frame[4] |= 0b100  # of the frame's header: a checksum follows the blocks
    return bytes(frame) + xxhash.xxh64_digest(content)[:3:-1]


PACKED = {
    Container.GZIP: gzip.compress,
    Container.BZIP2: bz2.compress,
    Container.ZSTD: zstd,
    Container.XZ: lzma.compress,
}


def labels(*sources):
    return [file.label for file in source_files([str(source) for source in sources])]


def read(path):
    (file,) = source_files([str(path)])
    with unpacked(file) as stream:
        return stream.read()


def test_a_folder_gives_its_files_by_name_at_any_depth(tmp_path):
    put(tmp_path, "day2/a.csv", "day1/b.csv", "day1/a.csv", "z.csv")
    assert labels(tmp_path) == ["day1/a.csv", "day1/b.csv", "day2/a.csv", "z.csv"]


def test_hidden_names_inside_folders_are_passed_over(tmp_path):
    put(tmp_path, "a.csv", ".b.csv", "_SUCCESS", "_logs/c.csv", ".d/e.csv")
    assert labels(tmp_path) == ["a.csv"]


def test_a_glob_gives_files_by_name_with_paths_from_its_first_wildcard_on(tmp_path):
    put(tmp_path, "logs/n2/a.csv", "logs/n1/b.csv", "logs/n1/a.csv", "logs/n1/a.txt")
    assert labels(tmp_path / "logs" / "*" / "*.csv") == ["n1/a.csv", "n1/b.csv", "n2/a.csv"]
    assert labels(tmp_path / "logs" / "**" / "*.txt") == ["n1/a.txt"]


def test_a_file_whose_name_looks_like_a_glob_is_itself(tmp_path):
    put(tmp_path, "a[1].csv", "a1.csv")
    assert labels(tmp_path / "a[1].csv") == ["a[1].csv"]


def test_a_zip_gives_its_members_in_archive_order_under_its_own_name(tmp_path):
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        for name in ("b.csv", "in/a.csv", "__MACOSX/b.csv"):
            archive.writestr(name, name)
        archive.mkdir("empty")
    found = source_files([str(tmp_path)])
    assert [file.label for file in found] == ["two.zip/b.csv", "two.zip/in/a.csv"]
    assert [head_of(file, 100) for file in found] == [b"b.csv", b"in/a.csv"]


@pytest.mark.parametrize(("container", "pack"), [*PACKED.items(), (Container.PLAIN, bytes)])
def test_packing_is_told_by_content_not_by_name(tmp_path, container, pack):
    put(tmp_path, "misleading.txt", content=pack(b"a,b\n"))
    assert source_files([str(tmp_path)])[0].container is container
    assert read(tmp_path / "misleading.txt") == b"a,b\n"


def test_a_file_named_twice_is_refused(tmp_path):
    put(tmp_path, "a.csv", "b.csv")
    os.symlink(tmp_path / "b.csv", tmp_path / "c.csv")
    with pytest.raises(UsageError, match=r"a\.csv is given twice"):
        labels(tmp_path / "a.csv", tmp_path / "*.csv")
    with pytest.raises(UsageError, match=r"c\.csv is given twice"):
        labels(tmp_path)


@pytest.mark.parametrize("pack", PACKED.values())
def test_a_truncated_archive_is_refused_by_name(tmp_path, pack):
    packed = pack(os.urandom(5000))
    put(tmp_path, "cut.log", content=packed[: len(packed) // 2])
    with pytest.raises(BadInput, match=r"cut\.log is truncated or damaged"):
        read(tmp_path / "cut.log")


def zipped(tmp_path, method=zipfile.ZIP_DEFLATED):
    path = tmp_path / "one.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a.csv", "a,b\n" * 1000)
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_zip_member_is_refused_by_name(tmp_path, method):
    path = zipped(tmp_path, method)
    content = bytearray(path.read_bytes())
    for at in range(50, 60):
        content[at] ^= 0x55
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"one\.zip/a\.csv is (truncated or damaged|unsupported compression)"):
        read(path)


def with_flags(path, *, flag=0, method=None):
    """A zip whose headers are changed in place: the flag bits, and the way its member is packed."""
    content = bytearray(path.read_bytes())
    for signature, at_flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.index(signature) + at_flags
        content[at] |= flag
        if method is not None:
            content[at + 2] = method
    path.write_bytes(content)
    return path


def test_an_encrypted_zip_is_refused(tmp_path):
    with pytest.raises(BadInput, match=r"one\.zip: member 'a\.csv' is encrypted; unpack it first"):
        labels(with_flags(zipped(tmp_path), flag=1))


def test_a_zip_packed_by_an_unknown_method_is_refused(tmp_path):
    with pytest.raises(BadInput, match=r"one\.zip/a\.csv has an unsupported compression"):
        read(with_flags(zipped(tmp_path), method=9))


@pytest.mark.parametrize(("start", "name"), [(b"\x04\x22\x4d\x18", "lz4"), (b"7z\xbc\xaf\x27\x1c", "7-zip")])
def test_packings_that_are_not_supported_are_named_with_their_tool(tmp_path, start, name):
    put(tmp_path, "a.log", content=start + b"\0" * 20)
    with pytest.raises(BadInput, match=f"has an unsupported compression, {name}; unpack it with `"):
        labels(tmp_path / "a.log")


def test_a_zip_with_two_members_of_one_name_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv", "x\n")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a.csv", "y\n")
    with pytest.raises(BadInput, match=r"two\.zip: the archive has two members named 'a\.csv'"):
        labels(tmp_path / "two.zip")


def test_a_name_that_is_not_utf_8_is_refused_and_shown(tmp_path):
    put(tmp_path, os.fsdecode(b"caf\xe9.csv"))
    with pytest.raises(BadInput, match=r"caf\\xe9\.csv: the file name is not UTF-8.*rename it"):
        labels(tmp_path)


@pytest.mark.parametrize(
    ("log", "table"),
    [
        ("_delta_log/00000000000000000000.json", "Delta"),
        ("metadata/00000-5f2c.metadata.json", "Iceberg"),
        ("metadata/v2.gz.metadata.json", "Iceberg"),
        (".hoodie/hoodie.properties", "Hudi"),
        ("_spark_metadata/0", "Spark's streaming sink"),
        ("snapshot/snapshot-1", "Paimon"),
    ],
)
@pytest.mark.parametrize("place", ["disk", "store"])
def test_files_of_a_table_are_refused_with_the_way_to_its_rows(request, tmp_path, log, table, place):
    root = tmp_path if place == "disk" else request.getfixturevalue("bucket")
    for name in (f"db/t/{log}", "db/t/data/day=1/part-0.parquet", "db/other/part-0.parquet"):
        put(root, name)
    for source in (
        "db",
        "db/t",
        "db/t/data",
        "db/t/data/day=1",
        "db/t/data/day=1/part-0.parquet",
        "db/*/*/*/*.parquet",
    ):
        with pytest.raises(
            BadInput,
            match=rf"db/t is a table of {table}, .* `adapt ingest --(table CATALOG.DB.TABLE|sql 'SELECT .*db/t`')`",
        ):
            source_files([str(root / source)])
    assert labels(str(root / "db/other")) == ["part-0.parquet"]


@pytest.mark.parametrize("folder", ["lake.files/main/t", "lake.files/main/t/day=1"])
def test_files_of_ducklake_are_refused_as_its_log_is_elsewhere(tmp_path, folder):
    name = f"{folder}/ducklake-0197b4e4-84b3-7a5c-b1d0-0a5f2c9d8e7f"
    put(tmp_path, f"{name}.parquet", f"{name}-delete.parquet", f"{folder}/a.parquet", "other/ducklake-export.parquet")
    for source in ("lake.files", folder, f"{name}.parquet"):
        with pytest.raises(BadInput, match=rf"{folder} is a table of DuckLake, .*by COPY in DuckDB, and read that"):
            labels(tmp_path / source)
    assert labels(tmp_path / "other") == ["ducklake-export.parquet"]


class Piped(io.TextIOWrapper):
    """Standard input, from a pipe or from a keyboard."""

    def __init__(self, content, keyboard=False):
        super().__init__(io.BytesIO(content))
        self._keyboard = keyboard

    def isatty(self):
        return self._keyboard


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_what_is_piped_in_is_read_whatever_it_is_packed_with(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(sys, "stdin", Piped(pack(b"a,b\n" * 1000)))
    (file,) = source_files(["-"], tmp_path / "kept")
    assert file.label == "stdin"
    with unpacked(file) as stream:
        assert stream.read() == b"a,b\n" * 1000


def test_standard_input_takes_its_place_among_the_sources(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Piped(b"x\n"))
    (tmp_path / "a.csv").write_text("a\n")
    (tmp_path / "b.csv").write_text("b\n")
    found = source_files([str(tmp_path / "b.csv"), "-", str(tmp_path / "a.csv")], tmp_path / "kept")
    assert [file.label for file in found] == ["b.csv", "stdin", "a.csv"]


@pytest.mark.parametrize("stdin", [Piped(b"", keyboard=True), None])
def test_standard_input_with_nothing_piped_in_is_refused_not_waited_for(tmp_path, monkeypatch, stdin):
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(UsageError, match="nothing is piped into it"):
        source_files(["-"], tmp_path / "kept")


def test_standard_input_can_be_read_once(tmp_path):
    with pytest.raises(UsageError, match="given twice"):
        source_files(["-", "-"], tmp_path / "kept")
