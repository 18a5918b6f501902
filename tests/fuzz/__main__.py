"""Run random cases: `python -m fuzz --cases 20000 --changes 1000 --bugs 5000 --seed 1`.

Cases check deltas and how they are applied; those of changes check change queries over histories.
Then bugs are planted, one at a time, and cases have to show each of them.
"""

import argparse
import random
import sys
import time

from fuzz.changes import run_changes
from fuzz.planted import search
from fuzz.run import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument(
        "--changes", type=int, default=1_000, help="change queries, after the rest"
    )
    parser.add_argument(
        "--bugs", type=int, default=5_000, help="cases that may be needed to show a planted bug"
    )
    parser.add_argument("--seed", type=int, default=0, help="0 takes one at random")
    parser.add_argument("--apply-every", type=int, default=4, help="1 applies every delta")
    options = parser.parse_args()
    seed = options.seed or random.randrange(1, 2**31)
    print(f"{options.cases} cases from seed {seed}", flush=True)
    started = time.monotonic()
    report = run(seed, options.cases, apply_every=options.apply_every, shrunk=True)
    print(report.summary())
    print(f"{time.monotonic() - started:.0f} seconds", flush=True)
    if options.changes:
        print(f"{options.changes} change queries from seed {seed}", flush=True)
        # The first failure ends it, with its seed.
        counts = run_changes(seed, options.changes)
        print(counts.summary())
        print(f"{time.monotonic() - started:.0f} seconds", flush=True)
    hidden = _hidden_bugs(seed, options.bugs) if options.bugs else []
    print(f"{time.monotonic() - started:.0f} seconds")
    return 1 if report.failures or report.unused_rules() or hidden else 0


def _hidden_bugs(seed: int, cases: int) -> list[str]:
    """Return the planted bugs that so many cases do not show."""
    print(f"planted bugs, each for at most {cases} cases from seed {seed}", flush=True)
    hidden = []
    for name, is_found in search(seed, cases):
        print(f"  {'found' if is_found else 'NOT FOUND'}: {name}", flush=True)
        hidden += [] if is_found else [name]
    return hidden


if __name__ == "__main__":
    sys.exit(main())
