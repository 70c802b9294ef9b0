"""From source columns to trace columns, and why a row or a mapping is refused."""

import re
from contextlib import suppress
from dataclasses import replace
from math import inf, nan

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, ParseException

from adapt.core.errors import UsageError
from adapt.traces.ingest.ingest import ingest
from adapt.traces.ingest.mapping import OF_THE_RUN, Mapping, chosen_time, mapped, selected, settled_format
from adapt.traces.ingest.times import TimeFormat, time_column

SCHEMA = (
    "_file int, _line bigint, _reason string, _text string, _path string, when string, `user.name` string, n string"
)
COLUMNS = ("when", "user.name", "n")


@pytest.fixture
def result(spark):
    """Maps rows of (user.name, n); every row has a time of its own unless one is given."""

    def map_rows(mapping, *rows, schema=SCHEMA, columns=COLUMNS):
        filled = [(0, at, None, None, "dir/a.csv", "2015-05-17", *row) for at, row in enumerate(rows, 1)]
        source = spark.createDataFrame(filled, schema)
        return mapped(source, mapping, TimeFormat("iso"), columns)

    return map_rows


def column(frame, name):
    return [row[name] for row in frame.orderBy("_line").collect()]


def test_an_expression_may_use_any_column_and_the_path(result):
    mapping = Mapping("concat(`user.name`, '@', _path)", "make_date(2015, 1, int(n))")
    assert column(result(mapping, ("ann", "2")), "key") == ["ann@dir/a.csv"]


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("int(n)", "bigint"),
        ("smallint(n)", "bigint"),
        ("n", "string"),
        ("n = '1'", "string"),
        ("cast(n as binary)", "binary"),
    ],
)
def test_keys_are_whole_numbers_text_or_binary(result, key, kind):
    assert dict(result(Mapping(key, "when"), ("ann", "1")).dtypes)["key"] == kind


@pytest.mark.parametrize("key", ["double(n)"])
def test_a_key_is_no_fraction(result, key):
    with pytest.raises(
        UsageError, match=r"--key has type (double|float), .*use bigint\(\.\.\.\), .*or string\(\.\.\.\)"
    ):
        result(Mapping(key, "when"), ("1", "1"))


@pytest.mark.parametrize("option", ["key", "where"])
def test_a_word_that_is_no_column_is_never_a_function(spark, option):
    source = spark.createDataFrame([], SCHEMA)
    for text, name in [
        *[
            ("user", "user"),
            ("USER", "USER"),
            ("`user`", "user"),
            (" current_date", "current_date"),
            ("_line", "_line"),
        ],
        *[("lower(user)", "user"), ("n || Session_User", "Session_User"), ("null", "null"), ("select", "select")],
    ]:
        with pytest.raises(UsageError, match=rf"--{option} '{re.escape(text)}': column '{name}' does not exist"):
            selected(source, text, option, COLUMNS)
    named = spark.createDataFrame([], "user string")
    with pytest.raises(UsageError, match="column 'USER' does not exist; did you mean 'user'"):
        selected(named, "lower(USER)", option, ["user"])
    with pytest.raises(UsageError, match=r"column 'user' does not exist; did you mean 'event.user' or 'by.user'"):
        selected(source, "upper(user)", option, COLUMNS, ["event.user", "by.user", "event.user.id"])
    with pytest.raises(UsageError, match=r"column 'user' does not exist; did you mean 'event.user.id'"):
        selected(source, "user", option, COLUMNS, ["event.user.id", "event.id"])


def test_all_that_spark_calls_without_parentheses_is_refused(spark):
    source = spark.createDataFrame([], "n string")
    called = set()
    for (name,) in spark.sql("show functions").collect():
        with suppress(AnalysisException, ParseException):
            source.selectExpr(name)
            called.add(name)
    assert {"user", "current_date"} < called - {"*"} <= {*OF_THE_RUN}


def test_a_column_with_the_name_of_a_function_is_that_column(result):
    schema = f"{SCHEMA}, user string, event struct<user: struct<id: string>>"
    for key, value in [("user", "bob"), ("lower(user)", "bob"), ("event.user.id", "eve"), ("n || user", "1bob")]:
        frame = result(
            Mapping(key, "when"), ("ann", "1", "bob", (("eve",),)), schema=schema, columns=(*COLUMNS, "user", "event")
        )
        assert column(frame, "key") == [value]


def test_a_word_that_an_expression_defines_itself_is_no_column(result):
    key = "concat_ws('user', transform(split(n, ','), user -> user || 'user'), struct(n as user).user)"
    assert column(result(Mapping(key, "when"), ("ann", "1,2")), "key") == ["1useruser2useruser1,2"]


def test_a_key_depends_on_columns(result):
    for key in ("uuid()", "'user'", '"n"', "1", "1 + 1"):
        with pytest.raises(UsageError, match=r"names no column|does not exist"):
            result(Mapping(key, "when"), ("ann", "1"))
    with pytest.raises(UsageError, match=r"current_user\(\) depends on who runs this, when or where"):
        result(Mapping("concat(n, current_user())", "when"), ("ann", "1"))


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("upper(", r"--key 'upper\(': .*end of input"),
        ("nosuch(n)", r"--key 'nosuch\(n\)': .*nosuch"),
    ],
)
def test_a_wrong_expression_is_refused_in_the_words_of_spark(result, expression, says):
    with pytest.raises(UsageError, match=says) as refused:
        result(Mapping(expression, "when"), ("ann", "1"))
    assert "\n" not in str(refused.value)
    assert "SQLSTATE" not in str(refused.value)


def test_costs_are_finite_and_not_negative_and_may_be_missing(result):
    values = ["1.5", "0", "", None, "-1", "NaN", "Infinity", "x", "1e3", "1e400"]
    frame = result(Mapping("n", "when", cost="n", cost_unit="us"), *(("ann", value) for value in values))
    assert column(frame, "cost_us") == [1.5, 0.0, None, None, None, None, None, None, 1000.0, None]
    assert column(frame, "_reason") == [
        *[None] * 4,
        "cost is negative",
        "cost is not finite",
        "cost is not finite",
        "cost is not a number",
        None,
        "cost is not finite",
    ]


def test_partitions_are_whole_numbers_of_32_bits(result):
    values = ["0", "7", "", "-1", "x", str(2**31 - 1), str(2**31)]
    frame = result(Mapping("n", "when", partition="n"), *(("ann", value) for value in values))
    assert dict(frame.dtypes)["partition"] == "int"
    reasons = ["partition is negative", "partition is not a number", None, "partition is too large"]
    assert column(frame, "_reason") == [None, None, None, *reasons]
    assert column(frame, "partition") == [0, 7, None, None, None, 2**31 - 1, None]


@pytest.mark.parametrize("option", ["key", "stream", "keep"])
def test_bytes_that_are_no_text_are_rejected(result, option):
    text = "string(unhex(n))"
    mapping = replace(Mapping("when", "when"), **{option: (f"key2 = {text}",) if option == "keep" else text})
    frame = result(mapping, ("ann", "FF"), ("ann", "77"))
    assert column(frame, "_reason") == [f"{'key2' if option == 'keep' else option} is not UTF-8 text", None]


def test_a_kept_expression_has_its_name_and_type(result):
    frame = result(Mapping("n", "when", keep=("user.name", "lat = double(n)", "n=n > '1'")), ("ann", "2"))
    assert dict(frame.dtypes).items() >= {"user.name": "string", "lat": "double", "n": "boolean"}.items()
    assert column(frame, "lat") == [2.0]
    assert column(frame, "n") == [True]


@pytest.mark.parametrize(
    ("keep", "says"),
    [
        (("x=n", "x=when"), "--keep gives two columns the name 'x'"),
        (("double(n)",), r"column 'double\(n\)' does not exist; name an expression, as in --keep 'NAME=EXPRESSION'"),
        (("x=double(m)",), r"--keep 'double\(m\)': column 'm' does not exist"),
        (("ts=n",), "--keep 'ts' is a name that every trace uses itself; give it another"),
        (("x=array(n)",), "--keep 'x' has type array<string>"),
    ],
)
def test_an_expression_that_cannot_be_kept_is_refused(result, keep, says):
    with pytest.raises(UsageError, match=says):
        result(Mapping("n", "when", keep=keep), ("ann", "1"))


def test_the_reason_of_the_reader_comes_first(spark):
    source = spark.createDataFrame([(0, 1, "not UTF-8 text", "x", "a", None, None, None)], SCHEMA)
    frame = mapped(source, Mapping("n", "when"), TimeFormat("iso"), COLUMNS)
    assert column(frame, "_reason") == ["not UTF-8 text"]


@pytest.mark.parametrize("name", ["ts", "_private"])
def test_kept_columns_cannot_take_the_names_of_the_traces_own(result, name):
    with pytest.raises(UsageError, match=f"--keep '{name}' is a name that every trace uses itself; (rename|give)"):
        result(
            Mapping("n", "when", keep=(name,)),
            ("ann", "1", "x"),
            schema=f"{SCHEMA}, {name} string",
            columns=(*COLUMNS, name),
        )


def test_only_columns_that_expressions_can_name_are_wanted():
    mapping = Mapping("concat(a, `b c`)", "when", keep=("d",))
    assert mapping.wanted(["when", "a", "b c", "d", "zz"]) == ["when", "a", "b c", "d"]


@pytest.fixture
def time_chosen(spark):
    """The time column that is chosen for one row of a source, given as column to value."""

    def choose(**row: object) -> str:
        frame = spark.createDataFrame([tuple(row.values())], list(row))
        return chosen_time(lambda: time_column(frame, list(row)), list(row))

    return choose


def test_the_time_is_a_column_of_a_usual_name_in_any_case(time_chosen):
    assert time_chosen(user="2015-01-01", Date="?", TIME="?") == "TIME"


def test_without_a_usual_name_the_time_is_the_first_column_that_reads_as_times(time_chosen):
    assert time_chosen(a="7", b="2009-01-06T05:15:07", c="2010-01-01") == "b"
    assert time_chosen(a=7, b=1_082_040_961, c="06/01/2009 05:15") == "c"


def test_numbers_are_times_only_between_1990_and_2100_in_some_unit(time_chosen):
    assert time_chosen(_c0="1", _c1="2", _c2="1082040961") == "_c2"
    assert time_chosen(a=1.5, b=1_082_040_961_000) == "b"
    assert time_chosen(a="20090106", b=42) == ""


def test_a_stated_format_is_not_guessed(spark):
    sample = spark.createDataFrame([("2015",)], "when string")
    assert settled_format(Mapping("when", "when", time_format="yyyy"), sample, ["when"]) == TimeFormat("yyyy")
    with pytest.raises(UsageError, match="--time 'wen': column 'wen' does not exist"):
        settled_format(Mapping("when", "wen"), sample, ["when"])


IDS = [0.0, nan, None, 7.0, nan, -3.0]


def keys(tmp_path, key, values, kind=None):
    """The keys of rows in order, and why rows are rejected."""
    times = pa.array([1_700_000_000 + at for at in range(len(values))], pa.timestamp("s"))
    pq.write_table(pa.table({"x": pa.array(values, kind), "ts": times}), tmp_path / "in.parquet")
    made = ingest([str(tmp_path / "in.parquet")], tmp_path / "out.trace", Mapping(key), force=True)
    return made.trace.to_arrow()["key"].to_pylist(), dict(made.rejects.reasons)


@pytest.mark.parametrize(
    "key",
    [
        *("BIGINT (x)", "x::long", "try_cast(x as int)"),
        *("if(true, int(`x`), 1)", "cast(round(x) AS INTEGER)", "floor(x)"),
    ],
)
def test_nan_is_null_however_the_cast_is_written(spark, tmp_path, key):
    assert keys(tmp_path, key, IDS) == ([0, None, None, 7, None, -3], {})


@pytest.mark.parametrize(
    ("key", "values", "kind"),
    [
        ("bigint(x)", [7.0, 7.5, inf, -inf, 1e30, 2.0**63], pa.float64()),
        ("int(x)", [7.0, 7.25, 3e9, -inf], pa.float32()),
        ("smallint(x)", [7.0, 65543.0], pa.float64()),
        ("cast(x as bigint)", ["7", "7.5"], pa.string()),
    ],
)
def test_values_that_a_cast_would_merge_are_rejected(spark, tmp_path, key, values, kind):
    rejected = {"key is not a whole number": len(values) - 1}
    assert keys(tmp_path, key, values, kind) == ([7], rejected)


def test_a_computed_value_is_cut_as_meant(spark, tmp_path):
    assert keys(tmp_path, "bigint(x / 10)", [7.0, 12.5, nan]) == ([0, 1, None], {})
    assert keys(tmp_path, "floor(x)", [7.0, 7.5, nan]) == ([7, 7, None], {})


def test_whole_numbers_stay_what_they_are(spark, tmp_path):
    assert keys(tmp_path, "bigint(x)", [2**62 + 1, 2**62], pa.int64()) == ([2**62 + 1, 2**62], {})
    assert keys(tmp_path, "bigint(x)", ["007", "-", "9007199254740993"], pa.string())[0] == [7, None, 9007199254740993]
