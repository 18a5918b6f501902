-- Rows: a join of three tables.
select
    l.l_orderkey, l.l_linenumber, o.o_custkey, c.c_name, o.o_orderdate, c.c_mktsegment,
    l.l_extendedprice * (1 - l.l_discount) as revenue
from {{ source('tpch', 'lineitem') }} as l
join {{ source('tpch', 'orders') }} as o on l.l_orderkey = o.o_orderkey
join {{ source('tpch', 'customer') }} as c on o.o_custkey = c.c_custkey
where o.o_orderstatus in ('O', 'F')
