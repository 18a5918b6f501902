"""Hooks on models, seeds, snapshots and runs."""

from dbt.tests.adapter.hooks import test_model_hooks as on_nodes
from dbt.tests.adapter.hooks import test_run_hooks as on_runs

COLUMNS = (
    "test_state string, target_dbname string, target_host string, target_name string, "
    "target_schema string, target_type string, target_user string, target_pass string, "
    "target_threads int, run_started_at string, invocation_id string, thread_id string"
)


class TestPrePostModelHooksOnSeeds(on_nodes.BasePrePostModelHooksOnSeeds):
    pass


class TestPrePostModelHooksOnSnapshots(on_nodes.BasePrePostModelHooksOnSnapshots):
    pass


class TestHooksRefsOnSeeds(on_nodes.BaseHooksRefsOnSeeds):
    pass


class TestAfterRunHooks(on_runs.BaseAfterRunHooks):
    pass
