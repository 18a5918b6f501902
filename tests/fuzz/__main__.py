"""Run random cases: `python -m fuzz --cases 20000 --seed 1`."""

import argparse
import random
import sys
import time

from fuzz.run import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0, help="0 takes one at random")
    options = parser.parse_args()
    seed = options.seed or random.randrange(1, 2**31)
    print(f"{options.cases} cases from seed {seed}", flush=True)
    started = time.monotonic()
    report = run(seed, options.cases, shrunk=True)
    print(report.summary())
    print(f"{time.monotonic() - started:.0f} seconds")
    return 1 if report.failures or report.unused_rules() else 0


if __name__ == "__main__":
    sys.exit(main())
