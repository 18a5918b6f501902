with balances as (

    select
        order_values.order_id,
        order_values.customer_id,
        order_values.order_value,
        coalesce(payments.paid, 0) as paid
    from {{ ref('dt_order_values') }} as order_values
    left join {{ ref('dt_payments_by_order') }} as payments
        on payments.order_id = order_values.order_id

)

select
    order_id,
    customer_id,
    order_value,
    paid,
    cast(order_value - paid as decimal(14, 2)) as open_balance
from balances
where order_value > paid
