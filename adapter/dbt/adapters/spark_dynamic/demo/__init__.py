"""The demo: `python -m dbt.adapters.spark_dynamic.demo` builds and refreshes the shop project."""
