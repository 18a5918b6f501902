"""Hooks on seeds, snapshots and runs.

dbt-spark runs no class for hooks on models: they compare the profile with Postgres'.
"""

from dbt.tests.adapter.hooks import test_model_hooks as on_nodes
from dbt.tests.adapter.hooks import test_run_hooks as on_runs


class TestPrePostModelHooksOnSeeds(on_nodes.BasePrePostModelHooksOnSeeds):
    pass


class TestPrePostModelHooksOnSnapshots(on_nodes.BasePrePostModelHooksOnSnapshots):
    pass


class TestHooksRefsOnSeeds(on_nodes.BaseHooksRefsOnSeeds):
    pass


class TestAfterRunHooks(on_runs.BaseAfterRunHooks):
    pass
