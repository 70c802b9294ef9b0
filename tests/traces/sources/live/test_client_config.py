"""Properties of a Kafka client, and the secrets in them."""

import pytest

from adapt.core.errors import BadInput, UsageError
from adapt.traces.sources.live.cluster import ClientConfig

JAAS = r"""
# as Kafka's own tools take it
security.protocol = SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
    username="ann" password="hunter\"2";
ssl.truststore.location=/etc/ca.pem
group.id=theirs
enable.auto.commit=true
"""


def config_of(tmp_path, text):
    file = tmp_path / "client.properties"
    file.write_text(text)
    return ClientConfig.read(file)


def test_properties_of_the_java_client_are_understood(tmp_path):
    settings = config_of(tmp_path, JAAS).for_readers("h:1")
    assert settings["sasl.username"] == "ann"
    assert settings["sasl.password"] == 'hunter"2'
    assert settings["ssl.ca.location"] == "/etc/ca.pem"
    assert "sasl.jaas.config" not in settings


def test_no_property_makes_a_reader_commit_or_join_a_group(tmp_path):
    settings = config_of(tmp_path, JAAS).for_readers("h:1")
    assert (settings["group.id"], settings["enable.auto.commit"], settings["bootstrap.servers"]) == (
        "adapt",
        False,
        "h:1",
    )


def test_values_are_shown_nowhere(tmp_path):
    config = config_of(tmp_path, JAAS)
    assert "hunter" not in repr(config)
    assert config.hidden('login of ann with hunter"2 failed') == "login of ... with ... failed"


def test_a_line_that_is_no_property_is_named_by_its_number_alone(tmp_path):
    with pytest.raises(UsageError, match=r"client\.properties: line 2 is not NAME=VALUE") as raised:
        config_of(tmp_path, "a=b\nhunter2\n")
    assert "hunter2" not in str(raised.value)


def test_a_missing_file_is_bad_input(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        ClientConfig.read(tmp_path / "none")
