"""Run random cases: `python -m fuzz --cases 20000 --changes 1000 --seed 1`.

Cases check deltas and how they are applied; those of changes check change queries over histories.
"""

import argparse
import random
import sys
import time

from fuzz.changes import run_changes
from fuzz.run import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument(
        "--changes", type=int, default=1_000, help="change queries, after the rest"
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
        print(f"{time.monotonic() - started:.0f} seconds")
    return 1 if report.failures or report.unused_rules() else 0


if __name__ == "__main__":
    sys.exit(main())
