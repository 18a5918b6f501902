"""Change queries of rows with columns of every type that has an identity."""

from itertools import product

import pytest
from change_reads import Reader
from spark_shop import SparkShop

from spark_dynamic.changes.integrate import own_columns, summed
from spark_dynamic.warehouse import Column

TYPES = {
    "int": "{0}", "double": "{0}D / 3", "float": "float(-0.0) * {0}", "decimal(20,3)": "{0}.125",
    "string": "'{0}é'", "binary": "x'0{0}'", "date": "date'2026-01-0{0}'", "boolean": "{0} = 1",
    "timestamp": "timestamp'2026-01-0{0} 01:00:00.123456'",
    "timestamp_ntz": "timestamp_ntz'2026-01-0{0} 01:00:00'",
    "array<double>": "array({0}D, null, double('NaN'))",
    "map<string,int>": "map('a', {0}, 'b', null)",
    "struct<a:int,b:map<int,string>>": "named_struct('a', {0}, 'b', map({0}, null))",
    "array<map<string,double>>": "array(map('a', -0.0D), null)",
    "varchar(3)": "'{0}'",
}  # fmt: skip


@pytest.mark.nightly
def test_every_type_in_every_mode(shop: SparkShop) -> None:
    names = {f"x{i}": type for i, type in enumerate(TYPES)}
    columns = ", ".join(f"{name} {type}" for name, type in names.items())
    shop.table("t", f"id int, {columns}")

    def row(number: int) -> str:
        return f"({number}, {', '.join(value.format(number) for value in TYPES.values())})"

    shop.run(f"INSERT INTO t VALUES {row(1)}, {row(2)}")
    nobody = ", ".join(["NULL"] * len(TYPES))
    keys = ({}, {"unique_key": ("id",)}, {"row_keys": {"t": ("id",)}})
    readers = [Reader(shop, "select * from t", **key) for key in keys]
    start = readers[0].now()
    shop.run(f"INSERT INTO t VALUES {row(3)}, (4, {nobody})")
    appended = readers[0].now()
    shop.run("UPDATE t SET x0 = 9 WHERE id = 1", "DELETE FROM t WHERE id = 2")
    # Written anew: versions are compared.
    shop.run("INSERT OVERWRITE t SELECT * FROM t WHERE id <> 4")
    counts = {"min_delta": 4, "redo_log": 6, "append_only": 2}
    for reader, mode in product(readers, counts):
        assert len(reader.rows(start, mode=mode)) == counts[mode], mode
        assert len(reader.rows(start, appended, mode=mode)) == 2
    log = readers[0].sql(start, mode="redo_log", initial_rows=True)
    described = shop.session.sql(f"DESCRIBE QUERY {log}").collect()
    known = own_columns([Column(found.col_name, found.data_type) for found in described])
    again = shop.session.sql(summed(f"(\n{log}\n)", known, has_diff=True)).collect()
    assert sorted(map(repr, again)) == sorted(map(repr, shop.session.table("t").collect()))
