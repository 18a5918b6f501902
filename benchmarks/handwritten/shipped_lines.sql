{{ config(
    unique_key=['l_orderkey', 'l_linenumber'],
    post_hook=delete_keys(['l_orderkey', 'l_linenumber'], gone('lineitem')),
) }}
select
    l_orderkey, l_linenumber, l_partkey, l_suppkey, l_quantity, l_shipdate, lower(l_shipmode) as mode,
    l_extendedprice * (1 - l_discount) as revenue
from {{ changed_rows('lineitem') }}
where l_linestatus in ('O', 'F') and l_quantity > 0
