-- Groups: few, of one table.
select
    l_returnflag, l_linestatus,
    sum(l_quantity) as quantity, sum(l_extendedprice) as price,
    avg(l_discount) as average_discount, count(*) as lines
from {{ source('tpch', 'lineitem') }}
group by l_returnflag, l_linestatus
