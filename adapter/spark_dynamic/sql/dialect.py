"""Our reading of Spark SQL: sqlglot's Databricks dialect with its known errors mended.

Each override is a case in which sqlglot would silently change what a query means.
"""

from functools import lru_cache
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.generators.databricks import DatabricksGenerator
from sqlglot.parsers.databricks import DatabricksParser
from sqlglot.tokenizer_core import Token, TokenType

from spark_dynamic.literals import ESCAPES
from spark_dynamic.sql.as_written import AS_WRITTEN, as_written, builders


class SparkDynamic(Databricks):
    """Spark 4 SQL."""

    class Tokenizer(Databricks.Tokenizer):
        """In Spark 4 a doubled quote inside a string is one quote."""

        STRING_ESCAPES = ["\\", "'", '"']

    class Parser(DatabricksParser):
        """`window(…)` is a function here, also as the first item of GROUP BY."""

        FUNCTIONS = DatabricksParser.FUNCTIONS | builders()
        FUNCTION_PARSERS = {
            name: parse
            for name, parse in DatabricksParser.FUNCTION_PARSERS.items()
            if name.lower() not in AS_WRITTEN
        } | {"SUBSTR": lambda self: self._parse_substr()}

        def parse(self, raw_tokens: list[Any], sql: str = "") -> Any:
            """Parse, having turned WINDOW before a parenthesis into a plain name."""
            for token, following in zip(raw_tokens, raw_tokens[1:], strict=False):
                if (
                    token.token_type == TokenType.WINDOW
                    and following.token_type == TokenType.L_PAREN
                ):
                    token.token_type = TokenType.VAR
            return super().parse(raw_tokens, sql)

        def _parse_substr(self) -> exp.Expr:
            """Parse what is SUBSTRING to Spark, too, with FROM; with commas it stays as it is."""
            start = self._index
            found = self._parse_substring()
            words = self._tokens[start : self._index]
            if any(word.token_type == TokenType.FROM for word in words):
                return found
            arguments = (found.args.get(key) for key in ("this", "start", "length"))
            return as_written("SUBSTR", [a for a in arguments if a is not None])

    class Generator(DatabricksGenerator):
        """Leaves nested CTEs, percentiles, TIME and the signs of shifts as they are."""

        EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()
        TRANSFORMS = {
            kind: write
            for kind, write in DatabricksGenerator.TRANSFORMS.items()
            if kind not in (exp.WithinGroup, exp.BitwiseLeftShift, exp.BitwiseRightShift)
        }
        TYPE_MAPPING = {
            kind: name
            for kind, name in DatabricksGenerator.TYPE_MAPPING.items()
            if kind is not exp.DataType.Type.TIME
        }


# sqlglot leaves some line breaks as they are, and writes a zero before a digit as another letter.
SparkDynamic.ESCAPED_SEQUENCES.update(ESCAPES)


@lru_cache(maxsize=64)
def parsed(text: str) -> exp.Expr:
    """Return the tree of a text, which nobody may change; it is asked for more than once."""
    return sqlglot.parse_one(text, dialect=SparkDynamic)


def tokens(text: str) -> list[Token]:
    """Return the words of a text, with their places in it."""
    return list(sqlglot.tokenize(text, dialect=SparkDynamic))


def rendered(text: str) -> str:
    """Return a text as sqlglot reads and writes it."""
    return parsed(text).sql(dialect=SparkDynamic)
