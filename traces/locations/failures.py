"""Failures of object stores: retries, and messages for users."""

import logging
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import ENOENT
from typing import Any, TypeVar

from adapt.core.errors import AdaptError, BadInput, EnvironmentFailure, near_miss
from adapt.traces.locations.storage_options import SECRETS

Answer = TypeVar("Answer")

ATTEMPTS = 6
"""How often a request is sent before it fails."""

_FIRST_WAIT_S = 0.2
_CHECK = "; check its name, the endpoint and the region"
_LOG = logging.getLogger(__name__)
_REDIRECT = "redirect without LOCATION"
_LASTING = ("builder error", "169.254.", _REDIRECT)
_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w+)</Code>|\"code\":\s*\"(\w+)\"")
_REGION = re.compile(r"<Region>([\w-]+)</Region>|expecting '([\w-]+)'|x-amz-bucket-region\W+([\w-]+)")


class Truncated(ConnectionError):
    """A store sent fewer bytes than asked for."""


class ChangedObject(BadInput):
    """An object that was replaced while it was read."""


class Occupied(EnvironmentFailure):
    """An object that a conditional write may not replace."""


def retried(location: object, request: Callable[[], Answer]) -> Answer:
    """Send a request; repeat it with backoff and jitter."""
    with store_failures(location):
        for attempt in range(1, ATTEMPTS):
            try:
                return request()
            except Exception as error:
                if not _may_pass(error):
                    raise
                wait = random.uniform(0.5, 1) * _FIRST_WAIT_S * 2 ** (attempt - 1)
                why = _reason(error)
            _LOG.info("%s: %s; attempt %d of %d in %.1f s", location, why, attempt + 1, ATTEMPTS, wait)
            time.sleep(wait)
        return request()


@contextmanager
def store_failures(location: object) -> Iterator[None]:
    """Turn errors of a store into one sentence with the remedy."""
    try:
        yield
    except (AdaptError, AssertionError):
        raise
    except Exception as error:
        explained = _explained(error, location)
        if explained is None:
            raise
        raise explained from None  # the text of the original may name an access key


def _may_pass(error: Exception) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    if type(error).__name__ != "GenericError" or any(each in str(error) for each in _LASTING):
        return False
    status = _STATUS.search(str(error))
    return status is None or status[1] in ("408", "429") or status[1] >= "500"


def _reason(error: Exception) -> str:
    text = str(error)
    status, code = _STATUS.search(text), _code_of(text)
    if status:
        return f"the store answered {status[1]}{f' {code}' if code else ''}"
    line = re.sub(r"\s+in [\d.]+\S*s\b", "", text.split("\n")[0].split(" - ", 1)[-1])
    return line.removeprefix("HTTP error: ") or type(error).__name__


def _code_of(text: str) -> str:
    found = _CODE.search(text)
    return (found[1] or found[2]) if found else ""


def _explained(error: Exception, location: object) -> Exception | None:
    """The error in one sentence; None for one that is not the store's."""
    text, kind = str(error), type(error).__name__
    code, status = _code_of(text), (_STATUS.search(text) or [""] * 2)[1]
    if code == "NoSuchBucket" or (kind == "GenericError" and status == "404"):
        return BadInput(f"{location}: there is no such bucket{_near_bucket(location)}")
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(ENOENT, "there is no such object", str(location))
    if kind == "PreconditionError":
        return ChangedObject(f"{location} changed while it was read; run again once nothing writes it")
    if not (type(error).__module__.startswith("obstore") or isinstance(error, (ConnectionError, TimeoutError))):
        return None
    if "169.254." in text:
        return EnvironmentFailure(
            f"{location}: there are no credentials; set {_secrets(location)}, or add"
            " --storage-option anonymous=true for a public bucket"
        )
    if code in ("ExpiredToken", "TokenRefreshRequired", "RequestExpired"):
        return EnvironmentFailure(f"{location}: the credentials have expired; renew them and run again")
    if code == "RequestTimeTooSkewed":
        return EnvironmentFailure(f"{location}: the clock of this machine differs from the store's; set it right")
    region = _REGION.search(text)
    if region or status in ("301", "307") or _REDIRECT in text or code == "AuthorizationHeaderMalformed":
        name = next(filter(None, region.groups()), "") if region else ""
        where = f"region {name}; add --storage-option region={name}" if name else "another region; set AWS_REGION"
        return EnvironmentFailure(f"{location}: the bucket is in {where}")
    if status in ("401", "403") or code == "InvalidToken" or kind in ("UnauthenticatedError", "PermissionDeniedError"):
        return EnvironmentFailure(
            f"{location}: the store refuses the credentials ({code or f'status {status}'}); check"
            f" {_secrets(location)}, and the rights on the bucket"
        )
    if "builder error" in text:
        return EnvironmentFailure(f"{location}: the endpoint is not a usable URL; check AWS_ENDPOINT_URL")
    if status and status < "500":
        return EnvironmentFailure(f"{location}: {_reason(error)}; check the location and --storage-option")
    return EnvironmentFailure(
        f"{location}: {_reason(error)}, {ATTEMPTS} times; check the network, AWS_ENDPOINT_URL and the region, and run"
        " again"
    )


def _secrets(location: object) -> str:
    return SECRETS.get(str(location).partition("://")[0][:4], SECRETS["s3"])


def _near_bucket(location: object) -> str:
    """A bucket of a similar name, where the store lists its buckets."""
    with suppress(Exception):
        client: Any = getattr(location, "client")  # noqa: B009
        return near_miss(str(location).split("/")[2], client.buckets()) or _CHECK
    return _CHECK
