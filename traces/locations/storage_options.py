"""Options of object stores: where and as whom, never with which secret."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from adapt.core.errors import EnvironmentFailure, UsageError, did_you_mean, near_miss

_SECRET = re.compile("key|secret|token|password|passwd|credential|sas|signature")
SECRETS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "abfs": "AZURE_STORAGE_ACCOUNT_KEY",
}
"""Variables of the environment with the credentials of a store."""

_BY_ENVIRONMENT = (
    f"secrets come from the environment, since a command line is public: set {SECRETS['s3']}, {SECRETS['gs']} or"
    f" {SECRETS['abfs']}"
)


@dataclass(frozen=True, slots=True, repr=False)
class StorageOptions:
    """How an object store is reached."""

    endpoint: str = ""  # URL of a server that is not the store's own
    region: str = ""  # region of the bucket
    profile: str = ""  # profile of the AWS files; needs boto3
    account: str = ""  # account of Azure, where the URI does not name it
    anonymous: str = ""  # `true` to send requests without credentials
    addressing: str = ""  # `virtual` where the server wants the bucket in the host name, else `path`


_DIRECTIONS = ("north", "south", "east", "west", "central", "northeast", "northwest", "southeast", "southwest")
_REGION = re.compile(rf"[a-z]{{2,4}}(-[a-z]+)?-({'|'.join(_DIRECTIONS)})-[1-9]")
_NEAR_REGION = re.compile(r"([a-z]{2}(?:-gov)?)[-_ ]?[a-z]+[-_ ]?([1-9])")

_CHOICES = {"anonymous": ("true", "false"), "addressing": ("path", "virtual")}
_used = StorageOptions()


def read_options(texts: Iterable[str]) -> StorageOptions:
    """Options as typed, each NAME=VALUE."""
    known = [each.name for each in fields(StorageOptions)]
    options = StorageOptions()
    for text in texts:
        name, equals, value = text.partition("=")
        if _SECRET.search(name.lower()):
            raise UsageError(f"--storage-option takes no {name!r}; {_BY_ENVIRONMENT}")
        if not equals or not value:
            raise UsageError(
                f"--storage-option takes NAME=VALUE (got {repr(name) if equals else 'a text'} without a value)"
            )
        if name not in known:
            raise UsageError(f"--storage-option has no {name!r}{did_you_mean(name, known)}")
        if value not in _CHOICES.get(name, (value,)):
            raise UsageError(f"--storage-option {name} must be {' or '.join(_CHOICES[name])} (got {value!r})")
        if name == "endpoint":
            check_no_secret(value if "://" in value else f"https://{value}")
        if name == "endpoint" and not re.match("https?://", value):
            raise UsageError(f"--storage-option endpoint must be a URL such as https://HOST:PORT (got {value!r})")
        options = replace(options, **{name: value})
    return options


def check_no_secret(uri: str) -> None:
    """Check that a URI has no password."""
    scheme, _, rest = uri.partition("://")
    user = rest.split("/")[0].rpartition("@")[0]
    if ":" in user or (user and scheme not in ("abfs", "abfss", "hdfs")):
        raise UsageError(f"a URI with credentials ({scheme}://...@...) is refused: {_BY_ENVIRONMENT}")


def check_region(name: str) -> None:
    """Check a name of a region of AWS, such as eu-west-1.

    New areas and numbers pass: a list of regions would age, and the libraries that have one are not needed otherwise.
    """
    if not name or _REGION.fullmatch(name):
        return
    parts = _NEAR_REGION.match(name.lower())
    near = near_miss(name, [f"{parts[1]}-{each}-{parts[2]}" for each in _DIRECTIONS]) if parts else ""
    raise EnvironmentFailure(
        f"AWS has no region {name!r} (AWS_REGION or --storage-option region){near or '; one is named as eu-west-1 is'}"
    )


def use_options(options: StorageOptions) -> None:
    """Set the options of all locations of this process from now on."""
    global _used
    _used = options


def used_options() -> StorageOptions:
    """The options of this process."""
    return _used
