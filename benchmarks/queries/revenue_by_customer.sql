-- Groups: many, of a join of two tables, with an extreme.
select
    o.o_custkey, sum(l.l_extendedprice) as revenue, count(*) as lines,
    max(o.o_orderdate) as last_order
from {{ source('tpch', 'lineitem') }} as l
join {{ source('tpch', 'orders') }} as o on l.l_orderkey = o.o_orderkey
group by o.o_custkey
