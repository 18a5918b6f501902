"""Snapshots: strategies, hard deletes, own column names, keys of several columns."""

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
    pass


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
