{{ config(unique_key=['l_returnflag', 'l_linestatus']) }}
select
    l_returnflag, l_linestatus,
    sum(l_quantity) as quantity, sum(l_extendedprice) as price,
    avg(l_discount) as average_discount, count(*) as lines
from {{ source('tpch', 'lineitem') }}
{% if is_incremental() -%}
where (l_returnflag, l_linestatus) in (
    select l_returnflag, l_linestatus from {{ all_changes('lineitem') }}
)
{%- endif %}
group by l_returnflag, l_linestatus
