"""Fail when a source file has grown past the limit: a file that long is two ideas."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

LIMIT = 400
SOURCES = {".py", ".sql", ".yml", ".yaml", ".toml", ".sh", ".md"}
# Made by tools or by a run. The changelog grows by nature.
NOT_OURS = {"target", "dist", "build", "logs", "dbt_packages", "__pycache__", "CHANGELOG.md"}


def source_files(root: Path) -> Iterator[Path]:
    """Walk the hand-written files, without following links or entering hidden folders."""
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f not in NOT_OURS and (f == ".ci" or f[0] != ".")]
        for name in files:
            path = Path(folder, name)
            if name not in NOT_OURS and (path.suffix in SOURCES or name in {"Makefile", "run"}):
                yield path


def too_long(root: Path) -> list[str]:
    """Return one line for each file with more than LIMIT lines."""
    lengths = {path: len(path.read_text().splitlines()) for path in source_files(root)}
    return [
        f"{path.relative_to(root)}: {lines} lines, at most {LIMIT} allowed"
        for path, lines in sorted(lengths.items())
        if lines > LIMIT
    ]


if __name__ == "__main__":
    complaints = too_long(Path(__file__).parents[1])
    if complaints:
        sys.exit("\n".join(complaints))
