select
    order_id,
    customer_id,
    ordered_on
from {{ ref('raw_orders') }}
where status <> 'cancelled'
