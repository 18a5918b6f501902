select
    customers.customer_id,
    customers.customer_name,
    customers.country,
    count(order_values.order_id) as orders,
    cast(coalesce(sum(order_values.order_value), 0) as decimal(16, 2)) as revenue
from {{ ref('stg_customers') }} as customers
left join {{ ref('dt_order_values') }} as order_values
    on order_values.customer_id = customers.customer_id
group by customers.customer_id, customers.customer_name, customers.country
