"""Spark Connect: Spark behind an address, with no Java in this process."""

import atexit
import os
import threading
from contextlib import suppress
from typing import Any

from adapt.core.errors import EnvironmentFailure, UsageError
from adapt.traces.spark.lazy import SparkSession

ANSWER_S = 15.0
"""How long a server may take to answer."""

MOST_RETRIES = 5
"""Retries of a request, for about 15 seconds: a server that starts again has lost the session."""

_sessions: list[SparkSession] = []
"""Sessions that were made here, which a server keeps for an hour unless they are ended."""


def is_remote() -> bool:
    """Whether Spark of this process is behind Spark Connect."""
    return "SPARK_CONNECT_MODE_ENABLED" in os.environ


def connected(url: str) -> SparkSession:
    """A new session of a server."""
    import pyspark
    from pyspark.errors import PySparkException

    try:
        import grpc
        from pyspark.sql.connect.client import DefaultChannelBuilder
        from pyspark.sql.connect.client.retries import DefaultPolicy
    except ImportError as error:
        raise EnvironmentFailure(
            "Spark Connect needs grpcio, grpcio-status, googleapis-common-protos and zstandard: pip install"
            " 'adapt-streams[connect]'"
        ) from error
    try:
        channel = DefaultChannelBuilder(url).toChannel()
    except PySparkException as error:
        raise UsageError(f"--master must be an address such as sc://HOST:15002 (got {url!r})") from error
    with channel:
        try:
            grpc.channel_ready_future(channel).result(ANSWER_S)
        except grpc.FutureTimeoutError as error:
            raise EnvironmentFailure(
                f"no Spark Connect server answers at {url}; start one with Spark's sbin/start-connect-server.sh, or"
                " correct --master (or SPARK_REMOTE)"
            ) from error
    session = pyspark.sql.SparkSession.builder.remote(url).getOrCreate()
    session.client.set_retry_policies([DefaultPolicy(max_retries=MOST_RETRIES)])
    check_version(_ended_at_exit(session), url)
    return session


def check_version(session: SparkSession, url: str) -> None:
    """Refuse a server older than this client.

    Spark Connect is made for newer ones.
    """
    from pyspark import __version__ as ours

    there, here = (tuple(map(int, text.split(".")[:2])) for text in (session.version, ours))
    if there < here:
        raise EnvironmentFailure(
            f"the server at {url} runs Spark {session.version}, older than PySpark {ours} here;"
            f" pip install 'pyspark=={there[0]}.{there[1]}.*'"
        )


def cloned(session: Any) -> SparkSession:
    """A second session with the state of this one."""
    return _ended_at_exit(session.cloneSession())


def _ended_at_exit(session: SparkSession) -> SparkSession:
    """The same session, ended on the server when this process ends."""
    if not _sessions:
        atexit.register(_end)
    _sessions.append(session)
    return session


def interrupt() -> None:
    """End what the server runs for this process.

    Gives up after a few seconds.
    """
    threads = [threading.Thread(target=_interrupted, args=(session,), daemon=True) for session in _sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)


def _interrupted(session: SparkSession) -> None:
    with suppress(Exception):
        session.interruptAll()


def _end() -> None:
    for session in reversed(_sessions):
        with suppress(Exception):
            session.stop()
