"""Well-known log formats, recognized by their lines."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from adapt.traces.sources.formats.console import PARTITIONS, TIMES
from adapt.traces.sources.formats.text import Pattern

_DAY = r"(?:\d{4}-\d\d-\d\d|\d\d/\d\d/\d\d)"
_TIME = rf"(?P<time>{_DAY}[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)"
_LEVEL = r"(?P<level>TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL|NOTICE)"
_THREAD = r"\[(?P<thread>[^\]]*)\]"
_LOGGER = r"(?P<logger>[\w.$-]+)"
_MESSAGE = r"(?P<message>.*)"
_REQUEST = r'"(?P<method>[^\s"]*) ?(?P<path>.*?)(?: (?P<protocol>HTTP/[\d.]+))?"'


@dataclass(frozen=True)
class LogFormat:
    """A log format."""

    name: str
    pattern: str  # an expression (RE2) with named groups
    missing: str = "-"  # text that is read as null
    only: str = ""  # beginning of the lines that are records; empty for all
    of_topic: bool = False  # whether its lines are records of a topic

    @cached_property
    def form(self) -> Pattern:
        """How its lines are read."""
        columns = tuple(field.name for field in pc.extract_regex(pa.array([""]), self.pattern).type)
        missing = dict.fromkeys((name for name in columns if name not in ("time", "ts", "message")), self.missing)
        of_topic = (TIMES, PARTITIONS if "partition" in columns else {}) if self.of_topic else ({}, {})
        return Pattern(self.pattern, columns, missing, f"not a line of the format {self.name}", *of_topic, self.only)


LOGS = (
    LogFormat("python", rf"^{_TIME} - {_LOGGER} - {_LEVEL} - {_MESSAGE}$"),
    LogFormat("logback", rf"^{_TIME} +{_THREAD} +{_LEVEL} +{_LOGGER} +- {_MESSAGE}$"),
    LogFormat("log4j", rf"^{_TIME}(?: -)? +{_LEVEL} +(?:{_THREAD} +)?(?:- )?(?:{_LOGGER}: )?{_MESSAGE}$", ""),
    LogFormat("openstack", rf"^(?P<file>\S+) {_TIME} (?P<pid>\d+) {_LEVEL} {_LOGGER} (?:{_THREAD} )?{_MESSAGE}$"),
    LogFormat("hdfs", rf"^(?P<time>\d{{6}} \d{{6}}) (?P<pid>\d+) {_LEVEL} {_LOGGER}: {_MESSAGE}$"),
    LogFormat(
        "bgl",
        r"^(?P<label>\S+) (?P<epoch>\d+) (?P<date>\S+) (?P<node>\S+) (?P<time>\d{4}-\d\d-\d\d-\d\d\.\d\d\.\d\d\.\d+)"
        rf" (?P<repeated>\S+) (?P<type>\S+) (?P<component>\S+) (?P<level>\S+) {_MESSAGE}$",
    ),
    LogFormat(
        "thunderbird",
        r"^(?P<label>\S+) (?P<time>\d{9,10}) (?P<date>\d{4}\.\d\d\.\d\d) (?P<node>\S+) (?P<clock>\S+ +\d+ \S+)"
        rf" (?P<location>\S+) (?P<app>[^\s:\[]+)(?:\[(?P<pid>\d+)\])?: ?{_MESSAGE}$",
    ),
    LogFormat(
        "hpc",
        r"^(?P<id>\d+) (?P<node>\S+) (?P<component>\S+) (?P<state>\S+) (?P<time>\d{9,10}) (?P<flag>\d+)"
        rf" {_MESSAGE}$",
    ),
    LogFormat("cbs", rf"^{_TIME}, (?P<level>[A-Z][a-z]+) +(?P<component>[A-Z]+) +{_MESSAGE}$"),
    LogFormat(
        "health app",
        r"^(?P<time>\d{8}-\d\d?:\d\d?:\d\d?):(?P<ms>\d{1,3})\|(?P<component>[^|]+)\|(?P<pid>\d+)\|"
        rf"{_MESSAGE}$",
    ),
    LogFormat(
        "proxifier",
        r"^\[(?P<time>\d\d\.\d\d \d\d:\d\d:\d\d)\] (?P<program>\S+)(?: \*64)? - (?P<target>\S+)"
        rf" {_MESSAGE}$",
    ),
    LogFormat(
        "android",
        r"^(?P<time>\d\d-\d\d \d\d:\d\d:\d\d\.\d+) +(?P<pid>\d+) +(?P<tid>\d+) (?P<level>\w)"
        rf" (?P<tag>.*?)\s*: {_MESSAGE}$",
    ),
    LogFormat(
        "syslog (RFC 5424)",
        r"^<(?P<priority>\d+)>1 (?P<time>\S+) (?P<host>\S+) (?P<app>\S+) (?P<pid>\S+) (?P<id>\S+)"
        rf" (?P<data>-|(?:\[(?:[^\]\\]|\\.)*\])+) ?{_MESSAGE}$",
    ),
    LogFormat(
        "syslog",
        r"^(?:<(?P<priority>\d+)>)?(?P<time>[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d) (?P<host>\S+)"
        rf" (?P<app>[^\s:\[]+)(?:\[(?P<pid>\d+)\])?: ?{_MESSAGE}$",
    ),
    LogFormat(
        "apache errors",
        r"^\[(?P<time>[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d(?:\.\d+)? \d{4})\] \[(?P<level>[\w:]+)\]"
        rf"(?: \[pid (?P<pid>[^\]]+)\])?(?: \[client (?P<client>[^\]]+)\])? {_MESSAGE}$",
    ),
    LogFormat(
        "envoy",
        rf"^\[(?P<time>\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z)\] {_REQUEST} (?P<status>\d+) (?P<flags>\S+)"
        r' (?P<bytes_received>\d+) (?P<bytes>\d+) (?P<duration>\d+) (?P<upstream_ms>\S+) "(?P<forwarded>[^"]*)"'
        r' "(?P<agent>[^"]*)" "(?P<request>[^"]*)" "(?P<host>[^"]*)" "(?P<upstream>[^"]*)".*$',
    ),
    LogFormat(
        "squid",
        r"^(?P<time>\d{9,10}\.\d+) +(?P<elapsed>-?\d+) (?P<client>\S+) (?P<action>\w+)/(?P<status>\d+) (?P<bytes>\d+)"
        r" (?P<method>\S+) (?P<url>\S+) (?P<user>\S+) (?P<peer>\S+) (?P<type>\S+).*$",
    ),
    LogFormat(
        "redis",
        r'^(?P<time>\d{9,10}\.\d+) \[(?P<db>\d+) (?P<client>[^\]]+)\] "(?P<command>\w+)"'
        r'(?: "(?P<key>(?:[^"\\]|\\.)*)")?.*$',
    ),
    LogFormat(
        "kafka-dump-log",
        r"^\| offset: (?P<offset>\d+) (?:position: \d+ )?(?:CreateTime|LogAppendTime): (?P<ts>\d+) keySize: -?\d+"
        r" valueSize: (?P<bytes>-?\d+).*?(?: key: (?P<key>.*?))?(?: payload: (?P<payload>.*))?$",
        "",
        "| offset:",
        of_topic=True,
    ),
    LogFormat(
        "confluent",
        r"^Timestamp:(?P<ts>\d+) Partition:(?P<partition>\d+) Offset:(?P<offset>\d+)"
        r"\t(?:(?P<key>.*?)\t)?(?P<value>.*)$",
        "",
        of_topic=True,
    ),
)
"""Known formats; the first that most lines have is taken."""


def log_of(lines: Sequence[str]) -> LogFormat | None:
    """The known format that most lines have."""
    plain = [line.rstrip("\r\n") for line in lines]
    for each in LOGS:
        sample = [line for line in plain if line.startswith(each.only)]
        if sample and 2 * _fitting(each, sample) > len(sample):
            return each
    fields = {line.count("::") for line in plain}
    if len(fields) == 1 and (number := fields.pop()) > 1:
        groups = "::".join(f"(?P<_c{at}>.*?)" for at in range(number + 1))
        return LogFormat("fields between ::", f"^{groups}$", "")
    return None


def _fitting(form: LogFormat, lines: Sequence[str]) -> int:
    """Number of lines of a format."""
    return int(pc.sum(pc.match_substring_regex(pa.array(lines), form.pattern).cast(pa.int64())).as_py())
