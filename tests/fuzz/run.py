"""Many cases, with counts of what they exercised."""

from collections import Counter
from dataclasses import dataclass, field

from fuzz.applied import Applying
from fuzz.case import Case, random_case
from fuzz.check import RULES, Failure, NotComparable, check
from fuzz.shrink import shrink


@dataclass
class Report:
    """What a run has found."""

    cases: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    not_comparable: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[Case, Failure]] = field(default_factory=list)

    def unused_rules(self) -> list[str]:
        return [rule for rule in RULES.values() if not self.features[rule]]

    def summary(self) -> str:
        lines = [f"{self.cases} cases, {len(self.failures)} failures"]
        lines += [f"  {count:6d} {name}" for name, count in self.features.most_common()]
        lines += [f"  {count:6d} refused: {name}" for name, count in self.refused.items()]
        lines += [f"  {n:6d} not comparable: {m}" for m, n in self.not_comparable.items()]
        return "\n".join(lines + [f"never used: {rule}" for rule in self.unused_rules()])


def run(
    seed: int,
    cases: int,
    *,
    interpret_every: int = 1,
    apply_every: int = 1,
    shrunk: bool = False,
    most: int = 5,
) -> Report:
    """Check cases one by one; stop after `most` failures."""
    duck, report = Applying(), Report()
    for number in range(cases):
        case = random_case(seed + number)
        report.cases += 1
        try:
            outcome = check(case, duck, number % interpret_every == 0, number % apply_every == 0)
        except NotComparable as error:
            report.not_comparable[str(error).split(":")[0]] += 1
            continue
        report.features.update(outcome.features)
        if outcome.refused:
            report.refused[outcome.refused] += 1
        if outcome.failure is not None:
            smallest = shrink(case, duck) if shrunk else case
            report.failures.append((smallest, outcome.failure))
            print(describe(smallest, duck), flush=True)
            if len(report.failures) >= most:
                break
    return report


def describe(case: Case, duck: Applying) -> str:
    """Return a failing case with its failure; the JSON at its end is a file for `cases`."""
    failure = check(case, duck).failure
    kind, message = (failure.kind, failure.message) if failure else ("?", "")
    again = f"make fuzz-engine CASES=1 CHANGES=0 BUGS=0 SEED={case.seed}"
    return f"seed {case.seed}: {kind} (the whole case: {again})\n{message}\n{case.to_json()}"
