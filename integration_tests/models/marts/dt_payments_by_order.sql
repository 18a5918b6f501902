{{ config(refresh_mode='incremental') }}

select
    order_id,
    count(*) as payments,
    max(paid_on) as last_paid_on,
    cast(sum(amount) as decimal(14, 2)) as paid
from {{ source('shop_raw', 'payments') }}
where status = 'settled'
group by order_id
