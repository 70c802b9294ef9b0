"""ORC sources: rows are numbered in their file, however Spark cuts it."""

import pyarrow as pa
import pytest
from pyarrow import orc

from adapt.core.errors import BadInput


@pytest.fixture
def small_pieces(spark):
    """Files are read in many pieces."""
    names = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    before = {name: spark.conf.get(name) for name in names}
    for name in names:
        spark.conf.set(name, "20000")
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


def test_rows_are_numbered_in_their_file_though_it_is_read_in_pieces(opened, tmp_path, small_pieces):
    rows = 60_000
    numbers = pa.array([at * 7919 % 100_003 for at in range(rows)])
    for name in ("a", "b"):
        orc.write_table(pa.table({"n": numbers}), tmp_path / f"{name}.orc", stripe_size=1 << 14, compression="zlib")
    frame = opened(tmp_path).frame(["n"])
    assert frame.rdd.getNumPartitions() > 4
    assert frame.where("n != (_line - 1) * 7919 % 100003").count() == 0
    told = [tuple(row) for row in frame.groupBy("_file").agg({"_line": "max", "n": "count"}).orderBy("_file").collect()]
    assert told == [(0, rows, rows), (1, rows, rows)]


def test_a_truncated_file_is_refused_by_name(opened, tmp_path):
    orc.write_table(pa.table({"k": list(range(100))}), tmp_path / "a.orc")
    data = (tmp_path / "a.orc").read_bytes()
    (tmp_path / "a.orc").write_bytes(data[:-10])
    with pytest.raises(BadInput, match=r"a\.orc is truncated or not valid ORC"):
        opened(tmp_path / "a.orc")


def test_a_union_refuses_a_file_only_if_it_is_used(opened, tmp_path):
    union = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["x", "y"])])
    nested = pa.StructArray.from_arrays([union], ["u"])
    orc.write_table(pa.table({"k": ["a", "b"], "u": union, "n": nested}), tmp_path / "a.orc")
    source = opened(tmp_path / "a.orc")
    assert source.readable == ("k",)
    with pytest.raises(BadInput, match=r"a\.orc: Spark cannot read column 'n' of type union"):
        source.first_rows(1, ["n"])
    assert [(row["_line"], row["k"]) for row in source.frame(["k"]).orderBy("_line").collect()] == [(1, "a"), (2, "b")]
