"""Run shell commands at the same time; show the first one's output at once, the others' after it.

One Spark keeps about one and a half cores busy: on two cores, two test processes are done sooner
than one after the other.
"""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial


def run_all(first: str, *others: str) -> int:
    """Run all to their ends, and return the first exit code that is not 0."""
    run = partial(subprocess.run, shell=True, stderr=subprocess.STDOUT)
    with ThreadPoolExecutor() as pool:
        behind = [pool.submit(run, command, stdout=subprocess.PIPE) for command in others]
        codes = [run(first).returncode]
        for command, done in zip(others, behind, strict=True):
            result = done.result()
            codes.append(result.returncode)
            sys.stdout.buffer.write(f"{command}\n".encode() + result.stdout)
            sys.stdout.flush()
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(run_all(*sys.argv[1:]))
