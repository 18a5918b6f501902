-- Groups: few, of a join of four tables.
select
    n.n_name, o.o_orderpriority,
    sum(l.l_extendedprice * (1 - l.l_discount)) as revenue, count(*) as lines
from {{ source('tpch', 'lineitem') }} as l
join {{ source('tpch', 'orders') }} as o on l.l_orderkey = o.o_orderkey
join {{ source('tpch', 'customer') }} as c on o.o_custkey = c.c_custkey
join {{ source('tpch', 'nation') }} as n on c.c_nationkey = n.n_nationkey
group by n.n_name, o.o_orderpriority
