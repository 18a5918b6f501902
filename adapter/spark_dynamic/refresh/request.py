"""What is asked of a refresh."""

from dataclasses import dataclass, field
from datetime import datetime

from spark_dynamic.apply.constraints import Constraint
from spark_dynamic.apply.view import Description
from spark_dynamic.changes.window import Window
from spark_dynamic.config import DynamicTableConfig
from spark_dynamic.names import TableName


@dataclass(frozen=True)
class Request:
    """One model in one invocation."""

    model: str
    view: TableName
    sql: str
    schema: str
    config: DynamicTableConfig
    # Those that count, and the variables that stood in the text, which has values in their place.
    settings: dict[str, str]
    engine_version: str
    full_refresh: bool = False
    full_refresh_forbidden: bool = False
    leaves_no_state: bool = False
    # Somebody asked for a refresh now, due or not.
    is_forced: bool = False
    # The data timestamp that the schedule chose; None leaves it to the cut.
    decided_at: datetime | None = None
    # The changes that are kept, if the table is a window of changes.
    window: Window | None = None
    comment: str | None = None
    column_comments: dict[str, str] = field(default_factory=dict)
    # What every row has to meet, by the model's contract.
    constraints: tuple[Constraint, ...] = ()

    @property
    def description(self) -> Description:
        """What is applied beside the rows."""
        return Description(self.config, self.comment, self.column_comments)

    @property
    def trigger(self) -> str:
        """Who asked: a person for this refresh, or whatever runs dbt."""
        return "MANUAL" if self.full_refresh or self.is_forced else "SCHEDULED"
