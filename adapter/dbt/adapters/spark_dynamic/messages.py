"""What people see of an error text of Spark: the sentence, not the plan or the JVM's stack."""

import re

# The parsed plan, which Spark prints below the sentence that says what is wrong with it.
_PLAN = re.compile(r"(SQLSTATE: \w{5}(?:; line \d+ pos \d+)?);\n.*", re.DOTALL)
_STACK = re.compile(r"\n(?:JVM stacktrace:|Driver stacktrace:|\s+at [\w.$/]+\().*", re.DOTALL)
# The Thrift server says it twice: the exception's class and message, after its own words.
_SERVER = re.compile(r"^Error running query: (?:\[[\w.]+\] )?[\w.$]+Exception: ")


def readable(text: str) -> str:
    r"""Return the sentence of an error text.

    >>> readable("[X] No column. SQLSTATE: 42703; line 1 pos 7;\n'Project ['a]\n+- OneRow")
    '[X] No column. SQLSTATE: 42703; line 1 pos 7'
    >>> readable("[Y] Raised. SQLSTATE: P0001\n\tat org.apache.spark.Raise.eval(raise.scala:1)")
    '[Y] Raised. SQLSTATE: P0001'
    """
    return _PLAN.sub(r"\1", _STACK.sub("", _SERVER.sub("", text))).rstrip()
