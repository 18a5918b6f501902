"""Where the adapter keeps files, and locks on them."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def cache_directory() -> Path:
    """Return the per-user cache: `SPARK_DYNAMIC_CACHE`, else the platform's cache folder."""
    chosen = os.environ.get("SPARK_DYNAMIC_CACHE")
    if chosen:
        cache = Path(chosen).expanduser()
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        cache = Path(base) / "dbt-spark-dynamic"
    cache.mkdir(parents=True, exist_ok=True)
    return cache.resolve()


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock file for the length of the block, waiting for it if need be."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def claim(path: Path) -> IO[str] | None:
    """Take a lock file for the life of this process; None if another process holds it.

    The holder's process id is in the file, so that a message can name it.
    """
    file = path.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file
