"""Snapshots: strategies, hard deletes, own column names, keys of several columns."""

from datetime import datetime

import pytest
from dbt.tests.adapter.simple_snapshot import fixtures
from dbt.tests.adapter.simple_snapshot.new_record_check_mode import BaseSnapshotNewRecordCheckMode
from dbt.tests.adapter.simple_snapshot.new_record_dbt_valid_to_current import (
    BaseSnapshotNewRecordDbtValidToCurrent,
)
from dbt.tests.adapter.simple_snapshot.new_record_timestamp_mode import (
    BaseSnapshotNewRecordTimestampMode,
)
from dbt.tests.adapter.simple_snapshot.test_ephemeral_snapshot_hard_deletes import (
    BaseSnapshotEphemeralHardDeletes,
    BaseSnapshotNewColumnSpecificCheckCols,
    BaseSnapshotNewColumnTimestampStrategy,
    BaseSnapshotNewColumnWithDeletes,
)
from dbt.tests.adapter.simple_snapshot.test_snapshot import BaseSimpleSnapshot, BaseSnapshotCheck
from dbt.tests.adapter.simple_snapshot.test_various_configs import (
    BaseSnapshotColumnNames,
    BaseSnapshotColumnNamesFromDbtProject,
    BaseSnapshotDbtValidToCurrent,
    BaseSnapshotInvalidColumnNames,
    BaseSnapshotMultiUniqueKey,
)
from dbt.tests.util import check_relations_equal, run_dbt

CURRENT = datetime(2099, 12, 31)


class OfSeedTable:
    """Override: Spark has no database level, so `target.database` is None."""

    @pytest.fixture(scope="class")
    def snapshots(self):
        text = fixtures.snapshot_actual_sql.replace("{{target.database}}.", "")
        return {"snapshot.sql": text}


class TestSnapshot(BaseSimpleSnapshot):
    pass


class TestSnapshotCheck(BaseSnapshotCheck):
    pass


class TestSnapshotColumnNames(OfSeedTable, BaseSnapshotColumnNames):
    pass


class TestSnapshotColumnNamesFromDbtProject(OfSeedTable, BaseSnapshotColumnNamesFromDbtProject):
    pass


class TestSnapshotInvalidColumnNames(OfSeedTable, BaseSnapshotInvalidColumnNames):
    pass


class TestSnapshotDbtValidToCurrent(OfSeedTable, BaseSnapshotDbtValidToCurrent):
    # Override: dbt counts on the order of rows, which Spark does not promise.
    def test_valid_to_current(self, project):
        project.run_sql(fixtures.create_seed_sql)
        project.run_sql(fixtures.create_snapshot_expected_sql)
        project.run_sql(fixtures.seed_insert_sql)
        project.run_sql(fixtures.populate_snapshot_expected_valid_to_current_sql)
        assert len(run_dbt(["snapshot"])) == 1
        assert self.ends(project) == {(identity, CURRENT) for identity in range(1, 21)}

        project.run_sql(fixtures.invalidate_sql)
        project.run_sql(fixtures.update_with_current_sql)
        assert len(run_dbt(["snapshot"])) == 1
        ends = self.ends(project)
        assert (10, datetime(2016, 8, 20, 16, 44, 49)) in ends
        assert {(identity, CURRENT) for identity in range(1, 21)} <= ends
        check_relations_equal(project.adapter, ["snapshot_actual", "snapshot_expected"])

    def ends(self, project):
        """Return the key and the end of each version."""
        query = "select id, test_valid_to from {schema}.snapshot_actual"
        return {tuple(row) for row in project.run_sql(query, fetch="all")}


class TestSnapshotMultiUniqueKey(BaseSnapshotMultiUniqueKey):
    # Override: as in OfSeedTable, for the view that this class snapshots.
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "seed.sql": "select * from {{ target.schema }}.seed",
            "snapshots.yml": fixtures.snapshots_multi_key_yml,
            "ref_snapshot.sql": fixtures.ref_snapshot_sql,
        }


class TestSnapshotNewRecordTimestampMode(OfSeedTable, BaseSnapshotNewRecordTimestampMode):
    pass


class TestSnapshotNewRecordCheckMode(OfSeedTable, BaseSnapshotNewRecordCheckMode):
    pass


class TestSnapshotNewRecordDbtValidToCurrent(BaseSnapshotNewRecordDbtValidToCurrent):
    # Override: as in OfSeedTable.
    @pytest.fixture(scope="class")
    def snapshots(self):
        text = "{% snapshot snapshot_actual %} select * from {{ target.schema }}.seed "
        return {"snapshot.sql": text + "{% endsnapshot %}"}


class TestSnapshotEphemeralHardDeletes(BaseSnapshotEphemeralHardDeletes):
    pass


class TestSnapshotNewColumnTimestampStrategy(BaseSnapshotNewColumnTimestampStrategy):
    pass


class TestSnapshotNewColumnSpecificCheckCols(BaseSnapshotNewColumnSpecificCheckCols):
    pass


class TestSnapshotNewColumnWithDeletes(BaseSnapshotNewColumnWithDeletes):
    pass
