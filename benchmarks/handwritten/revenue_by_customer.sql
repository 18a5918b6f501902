{{ config(unique_key='o_custkey', post_hook=delete_keys(['o_custkey'], customers_gone())) }}
select
    o.o_custkey, sum(l.l_extendedprice) as revenue, count(*) as lines,
    max(o.o_orderdate) as last_order
from {{ source('tpch', 'lineitem') }} as l
join {{ source('tpch', 'orders') }} as o on l.l_orderkey = o.o_orderkey
{% if is_incremental() -%}
where o.o_custkey in (select o_custkey from {{ all_changes('orders') }})
{%- endif %}
group by o.o_custkey
