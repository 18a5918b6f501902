{{ config(unique_key=['n_name', 'o_orderpriority']) }}
select
    n.n_name, o.o_orderpriority,
    sum(l.l_extendedprice * (1 - l.l_discount)) as revenue, count(*) as lines
from {{ source('tpch', 'lineitem') }} as l
join {{ source('tpch', 'orders') }} as o on l.l_orderkey = o.o_orderkey
join {{ source('tpch', 'customer') }} as c on o.o_custkey = c.c_custkey
join {{ source('tpch', 'nation') }} as n on c.c_nationkey = n.n_nationkey
{% if is_incremental() -%}
where (c.c_nationkey, o.o_orderpriority) in (
    select c_nationkey, o_orderpriority
    from {{ all_changes('orders') }} join {{ source('tpch', 'customer') }} on o_custkey = c_custkey
)
{%- endif %}
group by n.n_name, o.o_orderpriority
