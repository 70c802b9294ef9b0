"""The JVM parts: a table from text, a file or the class path; Kafka's producer follows it."""

import json
import os
import shutil
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import confluent_kafka
import pyspark
import pytest

from adapt.core.engines.names import Engine
from tests.jvm.rekeying import CHANNELS, ROOT, built, java, places, table_of, written
from tests.kafka_broker import create_topic

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def jar(tmp_path_factory):
    """The jar of the JVM parts."""
    return built(tmp_path_factory.mktemp("jvm"))


TABLES = {
    "string": {"clé ключ \N{GRINNING FACE} \"\\\t": ["clé ключ \N{GRINNING FACE} \"\\\t~0", "x~1"], "b": ["b~7"]},
    "int64": {"-7": ["281474976710649", "9"], "5": ["281474976710661"]},
    "binary": {"00ff": ["00ff7e30", "00ff7e31"], "": ["7e30"]},
}


def as_table(key_type, keys, engine="kafka"):
    return {
        **{"schema": "adapt.rekey/1", "engine": engine, "channels": CHANNELS, "max_parallelism": None},
        **{"key_type": key_type, "plan": "0" * 64, "later": [1.5e3, True, None, {}, []], "keys": keys},
    }


def test_every_key_type_is_replaced_and_stripped_from_a_string_a_file_and_the_class_path(jar, tmp_path):
    (tmp_path / "classes").mkdir()
    subprocess.run(["javac", "-cp", jar, "-d", "classes", HERE / "Replace.java"], cwd=tmp_path, check=True)
    path = [jar, tmp_path / "classes", tmp_path]
    for key_type, keys in TABLES.items():
        file = written(as_table(key_type, keys), tmp_path / f"{key_type}.json")
        typed = [*(key for key in keys if "\t" not in key), {"string": "other", "int64": "77", "binary": "aa"}[key_type]]
        expected = [
            "\t".join([keys.get(key, [key])[0], (keys.get(key, [key]) * 2)[1], key]) for key in typed
        ]
        where = {"string": f"classpath:{file.name}", "int64": file, "binary": file.read_text()}[key_type]
        assert java(tmp_path, path, "-Dfile.encoding=UTF-8", "Replace", where, text="\n".join(typed) + "\n") == expected
