select
    line_id,
    order_id,
    product,
    quantity,
    cast(quantity * unit_price as decimal(12, 2)) as line_value
from {{ ref('raw_lines') }}
