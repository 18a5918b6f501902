"""The engine's own errors."""


class EngineError(Exception):
    """A refresh that cannot go on. The text is `CODE: sentence`."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(f"{code}: {sentence}")
        self.code = code
        self.sentence = sentence


class WarehouseError(Exception):
    """A statement that the warehouse refused.

    `condition` is Spark's name of the error, such as TABLE_OR_VIEW_NOT_FOUND, or "".
    """

    def __init__(self, condition: str, message: str) -> None:
        super().__init__(message)
        self.condition = condition

    @property
    def is_conflict(self) -> bool:
        """Tell whether another writer was faster, so that planning again may succeed."""
        return self.condition.startswith("DELTA_CONCURRENT") or self.condition in (
            "DELTA_METADATA_CHANGED",
            "DELTA_PROTOCOL_CHANGED",
            "TABLE_OR_VIEW_ALREADY_EXISTS",
            "DELTA_TABLE_ALREADY_EXISTS",
        )
