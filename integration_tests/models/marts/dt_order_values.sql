{{ config(refresh_mode='incremental') }}

select
    orders.order_id,
    orders.customer_id,
    orders.ordered_on,
    count(*) as order_lines,
    cast(sum(items.line_value) as decimal(14, 2)) as order_value
from {{ ref('stg_orders') }} as orders
join {{ ref('stg_lines') }} as items
    on items.order_id = orders.order_id
group by orders.order_id, orders.customer_id, orders.ordered_on
