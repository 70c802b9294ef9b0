"""No secret is left in a text, and nothing else is lost."""

import pytest

from adapt.core.errors import redacted, redacted_word

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
