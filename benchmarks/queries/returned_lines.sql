-- Rows: a filter.
select l_orderkey, l_linenumber, l_partkey, l_suppkey, l_quantity, l_extendedprice, l_shipdate
from {{ source('tpch', 'lineitem') }}
where l_returnflag = 'R'
