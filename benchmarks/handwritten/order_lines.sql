{{ config(
    unique_key=['l_orderkey', 'l_linenumber'],
    post_hook=delete_keys(['l_orderkey', 'l_linenumber'], gone('lineitem')),
) }}
-- Lines arrive, change and go with their orders.
select
    l.l_orderkey, l.l_linenumber, o.o_custkey, c.c_name, o.o_orderdate, c.c_mktsegment,
    l.l_extendedprice * (1 - l.l_discount) as revenue
from {{ changed_rows('lineitem') }} as l
join {{ changed_rows('orders') }} as o on l.l_orderkey = o.o_orderkey
join {{ source('tpch', 'customer') }} as c on o.o_custkey = c.c_custkey
where o.o_orderstatus in ('O', 'F')
