"""The library of a page's charts, kept in the user's cache folder."""

import gzip
from base64 import b64decode, b64encode
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from adapt.core.errors import EnvironmentFailure
from adapt.core.report.interactive import BUNDLED, Library, bundled
from adapt.traces.spark.java import user_cache
from adapt.traces.store import disk
from adapt.traces.store.atomic import replace_whole


def kept_library() -> Library:
    """The library as an earlier run kept it.

    Bundled anew, and kept, if there is none or it is damaged.
    """
    for path in _places():
        with suppress(OSError, ValueError, EOFError):
            digest, _, packed = path.read_text("ascii").partition("\n")
            if b64encode(sha256(gzip.decompress(b64decode(packed, validate=True))).digest()).decode() == digest:
                return Library(packed, digest)
    library = bundled()
    for path in _places():
        with suppress(OSError, EnvironmentFailure):  # without a cache, the next run bundles again
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_whole(path, f"{library.digest}\n{library.packed}".encode())
            for other in path.parent.glob("vega-*"):
                if other != path:
                    disk.remove_tree(other)
            break
    return library


def _places() -> list[Path]:
    """Where it may be kept, by its version; the preferred place first."""
    key = sha256(f"{version('vl-convert-python')} {BUNDLED}".encode()).hexdigest()[:16]
    return [folder / "charts" / f"vega-{key}" for folder in user_cache()]
