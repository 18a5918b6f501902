"""The operation that removes what is left of dynamic tables."""

from collections.abc import Iterator
from typing import Any, Final

import agate
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.spark_dynamic.config import lenient_config
from dbt.adapters.spark_dynamic.errors import reported
from dbt.adapters.spark_dynamic.operations import Operations, as_list, text_table
from dbt.adapters.spark_dynamic.project import Project
from dbt.adapters.spark_dynamic.warehouse import DbtWarehouse
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.left_directories import left_directories
from spark_dynamic.refresh.prune import Left, old_generations, without_model
from spark_dynamic.warehouse import Warehouse

_COLUMNS: Final = ["table", "why", "removed"]


class PruneOperation(Operations):
    """What `dbt run-operation dynamic_table_prune` does."""

    def prune(self, tables: Any = None, dry_run: Any = True) -> agate.Table:
        """Remove old generations, left directories, and those tables without a model named."""
        if not isinstance(dry_run, bool):
            raise DbtRuntimeError(
                f"ARGUMENT_INVALID: Invalid value for `dry_run`: {dry_run!r}. "
                "Expected true or false."
            )
        cycle, warehouse = self._tables.look()
        rows = []
        with reported():
            found = list(self._left(cycle, warehouse))
            named = self._named(as_list(tables) or [], found)
            for left in found:
                goes = left.of_gone is None or str(left.of_gone) in named
                if goes and not dry_run:
                    warehouse.execute(left.statement)
                removed = "no: dry run" if dry_run else "yes"
                rows.append([str(left.name), left.why, removed if goes else "no: not named"])
            rows += self._directories(dry_run, cycle, warehouse)
        return text_table(_COLUMNS, rows)

    def _directories(
        self, dry_run: bool, cycle: Cycle, warehouse: DbtWarehouse
    ) -> Iterator[list[str]]:
        """Remove the directories that killed builds left, where that can be done."""
        roots = {}
        for table in Project(self._manifest).tables.values():
            config = lenient_config(table.node.config.to_dict(omit_none=True))
            roots[table.name] = config.location_root or ""
        for left in left_directories(roots, cycle, warehouse):
            removed = "no: remove it yourself"
            if not left.has_commits:
                removed = "no: dry run" if dry_run else removed
                if not dry_run and warehouse.remove_directory(left.path):
                    removed = "yes"
            yield [left.path, left.why, removed]

    def _left(self, cycle: Cycle, warehouse: Warehouse) -> Iterator[Left]:
        project = Project(self._manifest)
        owned = [table.name for table in project.tables.values()]
        for table in project.tables.values():
            config = lenient_config(table.node.config.to_dict(omit_none=True))
            yield from old_generations(table.name, config.history_retention, cycle, warehouse)
        schemas = {(name.catalog, name.schema): name for name in owned}
        for _, name in sorted(schemas.items()):
            yield from without_model(name, owned, cycle, warehouse)

    def _named(self, names: list[str], found: list[Left]) -> set[str]:
        """Return the tables that are to go; each name has to be one that was found."""
        known = {str(left.of_gone) for left in found if left.of_gone is not None}
        chosen = set()
        for name in names:
            parts = TableName.parse(name)
            matching = {
                k for k in known if k == str(parts) or k.rpartition(".")[2] == name.lower()
            }
            if len(matching) != 1:
                raise DbtRuntimeError(
                    f"ARGUMENT_INVALID: Invalid value for `tables`: '{name}'. Expected a dynamic "
                    "table without a model, of which there are: "
                    f"{', '.join(sorted(known)) or 'none'}."
                )
            chosen |= matching
        return chosen
