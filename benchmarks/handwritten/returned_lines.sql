{{ config(
    unique_key=['l_orderkey', 'l_linenumber'],
    post_hook=delete_keys(['l_orderkey', 'l_linenumber'], gone('lineitem')),
) }}
select l_orderkey, l_linenumber, l_partkey, l_suppkey, l_quantity, l_extendedprice, l_shipdate
from {{ changed_rows('lineitem') }}
where l_returnflag = 'R'
