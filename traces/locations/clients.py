"""Clients of object stores: list, read by ranges, write under a condition.

obstore is the one light library (a wheel without dependencies) that S3, GCS and Azure share. pyarrow's file systems ask
for the size at each opening, cannot write under a condition, and do not notice an object that changes between two
ranges; they serve HDFS only.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from adapt.core.errors import EnvironmentFailure
from adapt.traces.locations.failures import ChangedObject, Occupied
from adapt.traces.locations.storage_options import StorageOptions, check_region

_CHUNK = 16 << 20
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Found:
    """An object of a store."""

    key: str  # its name in the bucket
    size: int
    modified_ns: int  # time of its last change, since 1970
    version: str  # its entity tag; another content has another one


class Client(Protocol):
    """A bucket; keys have no leading slash."""

    def head(self, key: str) -> Found:
        """Facts about an object."""

    def read(self, key: str, span: tuple[int, int] | None, version: str) -> Any:
        """A range of an object, or all of it, as a buffer."""

    def below(self, prefix: str) -> Iterator[Found]:
        """All objects below a folder."""

    def inside(self, prefix: str) -> tuple[Sequence[str], Sequence[Found]]:
        """Folders and objects directly in a folder."""

    def write(self, key: str, data: bytes | Path, over: str | None) -> None:
        """Write an object over any (None), none (empty), or one version."""

    def remove(self, keys: Sequence[str]) -> None:
        """Remove objects."""

    def buckets(self) -> Sequence[str]:
        """Names of the buckets, if the store lists them."""


@lru_cache(maxsize=64)
def client_of(scheme: str, bucket: str, options: StorageOptions) -> Client:
    """The client of a bucket, kept for the process."""
    return _Hadoop(bucket) if scheme == "hdfs" else _Objects(scheme, bucket, options)


class _Objects:
    """A bucket of S3, GCS or Azure."""

    def __init__(self, scheme: str, bucket: str, options: StorageOptions) -> None:
        if find_spec("obstore") is None:
            raise EnvironmentFailure(
                f"{scheme}:// needs the package obstore; pip install 'adapt-streams[stores]' brings it"
            )
        import obstore

        self._scheme, self._options = scheme, options
        self._obstore: Any = obstore
        self._store: Any = _opened(scheme, bucket, options)

    def head(self, key: str) -> Found:
        try:
            return _found(self._obstore.head(self._store, key))
        except FileNotFoundError:
            raise
        except Exception as error:
            if "status code: 4" in str(error):  # an answer to HEAD has no body to say why
                self._obstore.get(self._store, key, options={"range": (0, 1)})
            raise

    def read(self, key: str, span: tuple[int, int] | None, version: str) -> Any:
        asked = {**({"range": span} if span else {}), **({"if_match": version} if version else {})}
        return self._obstore.get(self._store, key, options=asked).bytes()

    def below(self, prefix: str) -> Iterator[Found]:
        for page in self._obstore.list(self._store, prefix or None, chunk_size=_PAGE):
            yield from map(_found, page)

    def inside(self, prefix: str) -> tuple[Sequence[str], Sequence[Found]]:
        listed = self._obstore.list_with_delimiter(self._store, prefix or None)
        return listed["common_prefixes"], list(map(_found, listed["objects"]))

    def write(self, key: str, data: bytes | Path, over: str | None) -> None:
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        mode: Any = "overwrite" if over is None else {"e_tag": over} if over else "create"
        multipart = None if over is None and isinstance(data, Path) else False  # conditions hold for single requests
        try:
            self._obstore.put(
                self._store, key, data, mode=mode, use_multipart=multipart, chunk_size=_CHUNK, max_concurrency=2
            )
        except (AlreadyExistsError, PreconditionError):
            raise Occupied(f"{key} was written by another run") from None

    def remove(self, keys: Sequence[str]) -> None:
        self._obstore.delete(self._store, list(keys))

    def buckets(self) -> Sequence[str]:
        if self._scheme != "s3":
            return ()
        from pyarrow import fs

        scheme, _, endpoint = _endpoint(self._options).partition("://")
        over = {"scheme": scheme, "endpoint_override": endpoint} if endpoint else {}
        return [each.path for each in fs.S3FileSystem(**over).get_file_info(fs.FileSelector(""))]


class _Hadoop:
    """An HDFS, by libhdfs; it cannot write under a condition."""

    def __init__(self, host: str) -> None:
        from pyarrow import fs

        try:
            self._fs: Any = fs.FileSystem.from_uri(f"hdfs://{host}/")[0]
        except OSError as error:
            raise EnvironmentFailure(
                f"hdfs://{host} needs Hadoop's libhdfs; set JAVA_HOME, HADOOP_HOME and CLASSPATH ({str(error)[:60]}...)"
            ) from None

    def head(self, key: str) -> Found:
        return self._files([f"/{key}"])[0]

    def read(self, key: str, span: tuple[int, int] | None, version: str) -> Any:
        if version and self.head(key).version != version:
            raise ChangedObject(f"{key} changed while it was read; run again once nothing writes it")
        with self._fs.open_input_file(f"/{key}") as file:
            return file.read_at(span[1] - span[0], span[0]) if span else file.readall()

    def below(self, prefix: str) -> Iterator[Found]:
        from pyarrow import fs

        selected = fs.FileSelector(f"/{prefix}", allow_not_found=True, recursive=True)
        yield from self._files(selected)

    def inside(self, prefix: str) -> tuple[Sequence[str], Sequence[Found]]:
        from pyarrow import fs

        infos = self._fs.get_file_info(fs.FileSelector(f"/{prefix}", allow_not_found=True))
        folders = [info.path.lstrip("/") for info in infos if not info.is_file]
        return folders, self._files([info.path for info in infos if info.is_file])

    def write(self, key: str, data: bytes | Path, over: str | None) -> None:
        if over is not None and over != self._version(key):
            raise Occupied(f"{key} was written by another run")
        self._fs.create_dir(f"/{key}".rpartition("/")[0] or "/", recursive=True)
        with self._fs.open_output_stream(f"/{key}") as file:
            file.write(data if isinstance(data, bytes) else data.read_bytes())

    def remove(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._fs.delete_file(f"/{key}")

    def buckets(self) -> Sequence[str]:
        return ()

    def _version(self, key: str) -> str:
        try:
            return self.head(key).version
        except FileNotFoundError:
            return ""

    def _files(self, asked: Any) -> list[Found]:
        found = []
        for info in self._fs.get_file_info(asked):
            if info.is_file:
                found.append(Found(info.path.lstrip("/"), info.size, info.mtime_ns, f"{info.mtime_ns}-{info.size}"))
            elif isinstance(asked, list):
                raise FileNotFoundError(info.path)
        return found


def _found(facts: Any) -> Found:
    modified = int(facts["last_modified"].timestamp() * 1e6) * 1000
    return Found(facts["path"], facts["size"], modified, facts["e_tag"] or "")


def _endpoint(options: StorageOptions) -> str:
    named = (options.endpoint, *(os.environ.get(name, "") for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")))
    return next(filter(None, named), "")


def _opened(scheme: str, bucket: str, options: StorageOptions) -> Any:
    """The store of obstore; requests are repeated by `retried`, which says so, not by it."""
    from obstore import store

    kinds: Any = store
    settings: dict[str, Any] = {"retry_config": {"max_retries": 0}}
    if options.anonymous == "true":
        settings["skip_signature"] = True
    if options.endpoint:
        settings["endpoint" if scheme != "gs" else "base_url"] = options.endpoint
    if scheme == "gs":
        return kinds.GCSStore(bucket, **settings)
    if scheme in ("abfs", "abfss"):
        container, _, account = bucket.partition("@")
        account = account.split(".")[0] or options.account
        return kinds.AzureStore(container, **settings, **({"account_name": account} if account else {}))
    if options.region:
        settings["region"] = options.region
    if not _endpoint(options):  # another server names its regions as it likes
        check_region(options.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "")
    if options.addressing == "virtual":
        settings["virtual_hosted_style_request"] = True
    profile = options.profile or os.environ.get("AWS_PROFILE", "")
    if profile:
        settings["credential_provider"] = _of_profile(profile)
    plain = _endpoint(options).startswith("http://")
    return kinds.S3Store(bucket, **settings, client_options={"allow_http": plain})


def _of_profile(name: str) -> Any:
    """Credentials of a profile; boto3 knows all that AWS's files can say."""
    if find_spec("boto3") is None:
        raise EnvironmentFailure(
            f"profile {name!r} needs the package boto3; pip install boto3, or set AWS_ACCESS_KEY_ID"
        )
    import boto3
    from botocore.exceptions import BotoCoreError
    from obstore.auth.boto3 import Boto3CredentialProvider

    try:
        return Boto3CredentialProvider(boto3.Session(profile_name=name))
    except (BotoCoreError, ValueError) as error:
        raise EnvironmentFailure(f"profile {name!r} has no credentials ({error}); check ~/.aws/credentials") from None
