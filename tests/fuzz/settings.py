"""Random changes of settings, and a query on which each of them shows."""

import random
from dataclasses import dataclass, replace

# What the profile sets, each by a variable of the environment with a value to begin with.
PROFILE = {
    "spark.sql.ansi.enabled": "{{ env_var('FUZZ_ANSI', 'true') }}",
    "spark.sql.jsonGenerator.ignoreNullFields": "{{ env_var('FUZZ_IGNORE_NULLS', 'true') }}",
    "fuzz_word": "{{ env_var('FUZZ_WORD', 'a') }}",
}


@dataclass(frozen=True)
class Settings:
    """The settings of one run."""

    ansi: bool = True
    ignore_nulls: bool = True
    word: str = "a"

    @property
    def environment(self) -> dict[str, str]:
        """What the profile reads."""
        return {
            "FUZZ_ANSI": str(self.ansi).lower(),
            "FUZZ_IGNORE_NULLS": str(self.ignore_nulls).lower(),
            "FUZZ_WORD": self.word,
        }

    def changed(self, rng: random.Random) -> "Settings":
        """Return settings of which one is another, or none."""
        return rng.choice((
            self,
            replace(self, ansi=not self.ansi),
            replace(self, ignore_nulls=not self.ignore_nulls),
            replace(self, word=rng.choice([w for w in "abc" if w != self.word])),
        ))  # fmt: skip

    def wanted(self, table: str) -> str:
        """Return what `told_by` means under these settings, whatever a session has."""
        option = f"map('ignoreNullFields', '{str(self.ignore_nulls).lower()}')"
        of_null = "CAST(NULL AS INT)" if self.ansi else "-1"
        return (
            f"SELECT to_json(struct(*), {option}) AS j, '{self.word}' AS w, {of_null} AS n "
            f"FROM {table}"
        )


def told_by(table: str) -> str:
    """Return a query whose rows depend on all of the settings."""
    size = "size(CAST(NULL AS ARRAY<INT>))"
    return f"SELECT to_json(struct(*)) AS j, '${{fuzz_word}}' AS w, {size} AS n FROM {table}"
