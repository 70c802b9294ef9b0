"""Values as text, phrases, secrets left out, and histograms of latency."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.compiled import compiled
from adapt.core.errors import redacted, redacted_word
from adapt.core.histogram import BINS, LEAST, MOST, bin_of, percentile, upper_edges
from adapt.core.phrases import listed, with_article
from adapt.core.table import Column, Kind
from adapt.core.values import human, plain, visible

cells = st.none() | st.booleans() | st.integers() | st.floats() | st.text()


@pytest.mark.parametrize(
    ("cell", "kind", "shown"),
    [
        (None, Kind.COUNT, "–"),
        (float("nan"), Kind.RATIO, "–"),
        (float("inf"), Kind.RATIO, "–"),
        (True, Kind.TEXT, "yes"),
        (1234567, Kind.TEXT, "1234567"),
        (1234567, Kind.COUNT, "1,234,567"),
        (1.5, Kind.RATIO, "1.500"),
        (0.123456, Kind.SHARE, "12.3 %"),
        (0.00001234, Kind.SHARE, "0.00123 %"),
        (0, Kind.SHARE, "0 %"),
        (512, Kind.BYTES, "512\u202fB"),
        (1536, Kind.BYTES, "1.5\u202fKiB"),
        (0.0015, Kind.SECONDS, "1.5\u202fms"),
        (59.99, Kind.SECONDS, "1\u202fmin"),
        (3661, Kind.SECONDS, "1\u202fh 1\u202fmin"),
        (0, Kind.TIME, "1970-01-01T00:00:00Z"),
        (1_500_000, Kind.TIME, "1970-01-01T00:00:01.500000Z"),
        (10**400, Kind.NUMBER, str(10**400)),
    ],
)
def test_each_kind_reads_as_people_write_it(cell, kind, shown):
    assert human(cell, Column("c", kind)) == shown


@given(cells, st.sampled_from(Kind))
def test_every_cell_of_every_kind_can_be_shown_on_one_line(cell, kind):
    shown = human(cell, Column("c", kind))
    assert visible(shown) == shown
    shown.encode()


@given(cells)
def test_a_plain_cell_is_the_cell_unless_it_is_not_finite(cell):
    assert plain(cell) is cell or (plain(cell) is None and isinstance(cell, float))


def test_what_acts_is_escaped_and_what_shows_stays():
    assert visible("a\x1b[31m\u202e\ud800\n") == "a\\x1b[31m\\u202e\\ud800\\x0a"
    assert visible("日本 é مفتاح 😀") == "日本 é مفتاح 😀"


@given(st.text(st.characters()))
def test_visible_text_is_encodable_and_escaping_it_again_changes_nothing(text):
    assert visible(visible(text)) == visible(text)
    assert not any(ord(character) < 0x20 for character in visible(text))
    visible(text).encode()


@pytest.mark.parametrize(
    ("noun", "said"), [("elastic run", "an elastic run"), ("plan", "a plan"), ("FIT run", "a FIT run")]
)
def test_a_noun_has_its_article(noun, said):
    assert with_article(noun) == said


def test_a_list_ends_with_and():
    assert [listed(each) for each in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


TEXTS = {
    "abfss://c:HU/SH@a/x": "abfss://...@a/x",
    "spark.sql.catalog.x.url=jdbc:mysql://h:1/db?user=a&password=HUSH": "spark.sql.catalog.x.url=jdbc:mysql://h:1/db?user=a&password=...",
    "jdbc:sqlserver://h;user=a;password=HUSH;encrypt=true": "jdbc:sqlserver://h;user=a;password=...;encrypt=true",
    "jdbc:oracle:thin:scott/HUSH@//h/db is wrong": "jdbc:oracle:thin:...@//h/db is wrong",
    "https://a:HUSH@h/x.csv and s3://HUSH@b/c": "https://...@h/x.csv and s3://...@b/c",
    "cannot read 's3://b/x?X-Amz-Credential=HUSH%2F&X-Amz-Date=1&X-Amz-Signature=HUSH'": "cannot read 's3://b/x?X-Amz-Credential=...&X-Amz-Date=1&X-Amz-Signature=...'",
    "https://h/x?sv=2020&sig=HUSH%3D&se=1": "https://h/x?sv=2020&sig=...&se=1",
    "https://h/x?AWSAccessKeyId=HUSH&Signature=HUSH&Expires=9": "https://h/x?AWSAccessKeyId=...&Signature=...&Expires=9",
    "https://h/x?token=HUSH#a, https://h/y?access_token=HUSH": "https://h/x?token=..., https://h/y?access_token=...",
    "spark.hadoop.fs.s3a.access.key=HUSH": "spark.hadoop.fs.s3a.access.key=...",
    "fs.azure.account.key.a.dfs.core.windows.net=HUSH==": "fs.azure.account.key.a.dfs.core.windows.net=...",
    'kafka.sasl.jaas.config=x.Plain required username="a" password="HUSH";': "kafka.sasl.jaas.config=...",
    '{"spark.x.password": "HU\\"SH", "spark.y": "1"}': '{"spark.x.password": ..., "spark.y": "1"}',
    "{'client_secret': 'HUSH', 'n': 1}": "{'client_secret': ..., 'n': 1}",
    "sasl.password:HUSH": "sasl.password:...",
}
PLAIN = [
    "--key=user --key-type text --passes=3",
    "columns: token, password; add a token: any",
    "abfss://container@account.dfs.core.windows.net/x, kafka://h:9092/topic@2 and hdfs://me@h/x",
    "abfss://container/x.csv?user=a&region=eu",
    "sort_key=3 and key=4",
    "C:\\x\\y?z=1",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_secret_is_left_out(text):
    assert redacted(text) == TEXTS[text]
    assert redacted(TEXTS[text]) == TEXTS[text]
    assert "HUSH" not in redacted_word(text)


@pytest.mark.parametrize("text", PLAIN)
def test_a_text_without_a_secret_is_as_it_was(text):
    assert redacted_word(text) == redacted(text) == text


def test_the_value_of_a_secret_setting_ends_with_its_word():
    assert redacted_word("--spark-conf=spark.x.password=a b;c&d") == "--spark-conf=spark.x.password=..."
    assert redacted_word("spark.x.password=a;b") == "spark.x.password=..."


@compiled
def bins_of(latencies, found):
    for at in range(len(latencies)):
        found[at] = bin_of(latencies[at])


def counted(latencies):
    found = np.zeros(len(latencies), np.int64)
    bins_of(np.array(latencies, np.float64), found)
    return found


@given(st.lists(st.one_of(st.floats(0, 1e-6), st.floats(1e-6, 1.0), st.floats(1.0, 1e8), st.sampled_from([0.0, -1.0]))))
def test_a_latency_is_in_the_first_bin_that_ends_above_it_and_none_is_beyond_the_last(latencies):
    edges = upper_edges()
    literal = [next((at for at, edge in enumerate(edges) if latency < edge), BINS - 1) for latency in latencies]
    assert counted(latencies).tolist() == literal


@given(st.lists(st.floats(2 * LEAST, MOST / 2), min_size=1, max_size=60), st.floats(0.01, 1), st.integers(0, 5))
def test_a_percentile_is_at_most_a_32nd_above_the_true_one(latencies, share, empty):
    true = np.sort(latencies)[max(0, int(np.ceil(share * len(latencies) - 1e-9)) - 1)]
    counts = np.bincount(counted(latencies), minlength=BINS)
    first = max(0, int(np.flatnonzero(counts)[0]) - empty)
    found = percentile(counts, share)
    assert true <= found <= true * (1 + 1 / 32)
    assert percentile(counts[first:], share, first) == found


def test_bins_follow_each_other_and_reach_from_nanoseconds_to_days():
    edges = upper_edges()
    assert len(edges) == BINS
    assert (np.diff(edges) > 0).all()
    assert LEAST < 1e-8
    assert MOST > 86400 * 20
    assert edges[-1] == MOST
