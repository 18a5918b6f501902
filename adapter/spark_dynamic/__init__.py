"""The engine: decides what a dynamic table needs and writes the statements that do it.

It imports neither dbt nor pyspark; what it needs from them comes through `Warehouse`.
"""
