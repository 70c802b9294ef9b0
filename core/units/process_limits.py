"""Limits of the process (`ulimit`), checked before native code aborts."""

from errno import EMFILE, ENFILE
from resource import RLIM_INFINITY, RLIMIT_AS, RLIMIT_NOFILE, getrlimit, setrlimit

from adapt.core.errors import EnvironmentFailure


def exhausted(error: Exception) -> EnvironmentFailure | None:
    """Memory or open files that ran out; None for other errors."""
    if isinstance(error, MemoryError):
        return EnvironmentFailure(
            "memory ran out; free some, raise the limit of `ulimit -v` or of the container, or give fewer rows"
        )
    if isinstance(error, OSError) and error.errno in (EMFILE, ENFILE):
        return EnvironmentFailure("too many files are open; raise the limit, as with `ulimit -n 4096`, and run again")
    return None


def require_limits(what: str, *, address_gb: int = 0, files: int = 0) -> None:
    """Refuse work that cannot be done within the limits of this process.

    Args:
        what: What needs them; the message begins with it.
        address_gb: Address space in GB.
        files: Files that must be open at once; a soft limit below is raised.
    """
    space, (soft, hard) = getrlimit(RLIMIT_AS)[0], getrlimit(RLIMIT_NOFILE)
    if RLIM_INFINITY != space < address_gb * 10**9:
        raise EnvironmentFailure(
            f"{what} needs {address_gb} GB of address space, and `ulimit -v` allows {space / 1e9:.1f} GB;"
            " run `ulimit -v unlimited` first, or ask for a higher limit"
        )
    if RLIM_INFINITY != hard < files:
        raise EnvironmentFailure(
            f"{what} needs {files} open files, and `ulimit -n` allows {hard}; run `ulimit -n {2 * files}` first, or ask"
            " for a higher limit"
        )
    if RLIM_INFINITY != soft < files:
        setrlimit(RLIMIT_NOFILE, (files, hard))
