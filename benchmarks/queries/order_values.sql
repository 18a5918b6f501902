-- Groups: as many as there are orders.
select
    l_orderkey, sum(l_extendedprice) as value, count(*) as lines, min(l_shipdate) as first_shipped
from {{ source('tpch', 'lineitem') }}
group by l_orderkey
