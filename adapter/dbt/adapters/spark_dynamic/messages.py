"""What people see of an error text of Spark: the sentences, not the plan or the JVM's stack."""

import re

# Words in front of the message: py4j's, the Thrift server's, the Java class's.
_PREFIX = re.compile(
    r"^(?:An error occurred while calling [^\n]+\n: )?"
    r"(?:(?:[\w.]+HiveSQLException: )?Error running query: (?:\[[\w.]+\] )?)?"
    r"(?:(?:\w+\.)+[\w$]+(?:Exception|Error): (?=\[))?"
)
_STACK = re.compile(r"\n(?:JVM stacktrace:|Driver stacktrace:|\s+at [\w.$/]+\().*", re.DOTALL)
# The plan, which Spark prints below the sentence that says what is wrong with it.
_PLAN = re.compile(r"(SQLSTATE: \w{5}(?:; line \d+ pos \d+)?);\n.*", re.DOTALL)
_CAUSE = re.compile(r"^Caused by: (\S+: \[[A-Z].*?)(?=\n\s+at |\Z)", re.DOTALL | re.MULTILINE)


def readable(text: str) -> str:
    r"""Return the message of an error text, and the message of what caused it.

    >>> readable("[X] No column. SQLSTATE: 42703; line 1 pos 7;\n'Project ['a]\n+- OneRow")
    '[X] No column. SQLSTATE: 42703; line 1 pos 7'
    >>> readable("a.BException: [Y] Failed.\n\tat a.C(D.scala:1)\nCaused by: a.EError: [Z] Big.")
    '[Y] Failed.\nCaused by: [Z] Big.'
    """
    message = _sentences(text)
    causes = [_sentences(cause) for cause in _CAUSE.findall(text)]
    if causes and causes[-1] not in message:
        message += f"\nCaused by: {causes[-1]}"
    return message


def _sentences(text: str) -> str:
    return _PLAN.sub(r"\1", _STACK.sub("", _PREFIX.sub("", text.strip()))).rstrip()
