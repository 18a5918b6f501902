{{ config(
    unique_key='l_orderkey',
    post_hook=delete_keys(['l_orderkey'], gone('orders', 'o_orderkey as l_orderkey')),
) }}
select
    l_orderkey, sum(l_extendedprice) as value, count(*) as lines, min(l_shipdate) as first_shipped
from {{ source('tpch', 'lineitem') }}
{% if is_incremental() -%}
where l_orderkey in (select l_orderkey from {{ all_changes('lineitem') }})
{%- endif %}
group by l_orderkey
