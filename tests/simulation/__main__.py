"""Run a random project for some time and say how its tables fared; or draw the picture."""

import argparse
import random
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

from simulation.projects import random_project
from simulation.saw_tooth import draw, shop
from simulation.weather import Weather, checked
from spark_dynamic.duration import format_duration
from spark_dynamic.schedule.lag_numbers import lag_numbers
from spark_dynamic.schedule.lags import ON_DEMAND
from spark_dynamic.schedule.situation import Situation

HOUR = timedelta(hours=1)
LAGS = [HOUR, 2 * HOUR, 4 * HOUR, "downstream"]
# So many tables read each other.
GROUP = 25


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--tables", type=int, default=1000)
    arguments.add_argument("--days", type=float, default=14)
    arguments.add_argument("--threads", type=int, default=50)
    arguments.add_argument("--slowest", type=float, default=10, help="seconds of a refresh")
    arguments.add_argument("--spread", type=float, default=0.5, help="by how much more it varies")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--picture", type=Path, help="draw the lag of two tables instead")
    given = arguments.parse_args()
    if given.picture:
        given.picture.write_text(draw(shop()))
        return
    rng = random.Random(given.seed)
    slowest = timedelta(seconds=given.slowest)
    project = random_project(rng, given.tables, LAGS, slowest, given.spread, group=GROUP)
    world = Weather(project, given.seed, threads=given.threads)
    begin = world.moment
    started = time.perf_counter()
    world.run_for(timedelta(days=given.days))
    took = time.perf_counter() - started
    report(world, begin)
    print(f"{given.days:g} days in {took:.1f} s")
    count, exceeded = checked(world)
    print(f"{count} peaks had nothing in their way, {len(exceeded)} of them exceeded the target")
    for found in exceeded[:10]:
        print(found)
    sys.exit(bool(exceeded) or not count)


def report(world: Weather, begin: datetime) -> None:
    situation = Situation(world.graph, world.known, world.moment, lateness=world.lateness())
    print(f"{len(world.runs)} runs with something due, {len(world.skipped)} skipped")
    print(f"{sum(map(len, world.failed.values()))} refreshes failed")
    print("target lag   tables   feasible   refreshes   highest peak   within target")
    for lag in sorted(set(world.graph.lags.values())):
        names = [n for n in world.graph.order if world.graph.lags[n] == lag]
        feasible = [n for n in names if situation.paces[n].is_feasible]
        refreshes = {n: [done.refresh for done in world.done[n]] for n in names}
        found = [
            numbers
            for n in feasible
            if (numbers := lag_numbers(refreshes[n], lag, begin, world.moment))
        ]
        if lag == ON_DEMAND or not found:
            continue
        share = sum(numbers.share_within_target for numbers in found) / len(found)
        print(
            f"{format_duration(lag):>10} {len(names):>8} {len(feasible):>10} "
            f"{sum(map(len, refreshes.values())):>11} "
            f"{format_duration(max(numbers.peak for numbers in found)):>14} {share:>15.2%}"
        )


if __name__ == "__main__":
    main()
