"""No secret of a command line, a URL or a client's file is shown or kept anywhere."""

import tempfile

import pyarrow.parquet as pq
import pytest

SECRET = "HUSHHUSH9"
SOURCE = f"web.csv?X-Amz-Signature={SECRET}&x=1"
READ = f"{SOURCE} --key user --time ts --max-rejects 1"
CONF = f"--spark-conf spark.x.password={SECRET} --spark-conf spark.x.url=jdbc:mysql://h/d?user=a&password={SECRET}"
URL = f"https://me:{SECRET}@h/x?token={SECRET}"
JOURNEY = (
    f"ingest {READ} -o w.trace -v",
    f"verdict {READ} --channels 4 --format json -v",
    "partition compare w.trace --channels 4 -o w.plans",
    "partition build w.trace --channels 4 -o w.plan",
    "report w.trace w.plans w.plan --html w.html --format json",
    "check w.trace --channels 4 -l imbalance<=9 --format json",
)
REFUSED = (
    f"ingest {URL} -o x.trace",
    f"ingest {SOURCE}x -o x.trace -v {CONF}",
    f"ingest x -o s3://me:{SECRET}@b/x.trace",
    f"ingest s3://b/x?X-Amz-Signature={SECRET} -o x.trace --storage-option endpoint=http://127.0.0.1:9",
    f"ingest x -o x.trace --storage-option endpoint=me:{SECRET}@h",
    f"ingest x -o x.trace --storage-option secret={SECRET}",
    f"ingest x -o x.trace --storage-option {SECRET}",
    f"ingest x -o x.trace --spark-conf {SECRET}",
    f"ingest x -o x.trace --master {URL}",
    f"ingest kafka://me:{SECRET}@h:1/t -o x.trace",
    f"inges --spark-conf=spark.x.password={SECRET}",
    f"ingest {URL} {URL} --bogus",
    f"report {URL}",
    f"check {URL} -l imbalance<=2",
    f"clean {URL}",
    f"calibrate flink {URL}",
)
PROPERTIES = (
    "sasl.password={}\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username={}",
    "ssl.key.password={}\nsecurity.protocol=SSL\nssl.key.location=/none",
    "ssl.key.pem={}\nsecurity.protocol=SSL",
    "sasl.pasword={}",
    "sasl.password {}",
    "security.protocol={}",
    "security.protocol=SASL_SSL\nsasl.mechanism={}",
    "security.protocol=SSL\nssl.cipher.suites={}",
    "security.protocol=SSL\nssl.ca.location=/none/{}",
    "security.protocol=SSL\nssl.providers={}",
    "debug={}",
)


@pytest.fixture(autouse=True)
def kept(tmp_path, monkeypatch):
    """The texts of all files that commands leave, caches and tracebacks among them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.name not in (SOURCE, "client.properties"):
            data = path.read_bytes()
            rows = repr(pq.read_table(path).to_pylist()) if data.startswith(b"PAR1") else ""
            assert SECRET.encode() not in data + rows.encode(), path


@pytest.mark.usefixtures("spark")
def test_a_secret_in_the_name_of_a_source_is_left_out(adapt, tmp_path):
    rows = "".join(f"{1_700_000_000 + at},u{at % (1 + at % 23)}\n" for at in range(600))
    (tmp_path / SOURCE).write_text(f"ts,user\n{rows}zzz,u1\n")
    for line in JOURNEY:
        said = adapt.done(*line.split())
        assert SECRET not in said.out + said.err, line
    assert (tmp_path / "w.trace" / "_rejects").is_dir()


@pytest.mark.parametrize("line", REFUSED)
def test_a_refused_secret_is_not_echoed(adapt, line):
    said = adapt(*line.split(), "--debug")
    assert said.code in (2, 3, 4)
    assert SECRET not in said.out + said.err


@pytest.mark.parametrize("properties", PROPERTIES)
def test_a_secret_of_the_client_of_kafka_is_not_echoed(adapt, tmp_path, properties):
    (tmp_path / "client.properties").write_text(properties.replace("{}", SECRET))
    line = "ingest kafka://127.0.0.1:1/t --client-config client.properties --key key -o x.trace -v --debug"
    said = adapt(*line.split())
    assert said.code in (2, 4)
    assert SECRET not in said.out + said.err
