from fake_shop import small_shop

TOTALS = "select customer, sum(amount) as total from shop.orders group by customer"

def test_first():
    shop = small_shop(totals=TOTALS)
    assert shop.run() == {"totals": "FULL/INITIAL_BUILD"}
    assert shop.is_right("totals")
    assert shop.run() == {"totals": "NO_DATA"}
    shop.spark.write("shop.orders").append((4, 20, 1))
    assert shop.run() == {"totals": "FULL/INCREMENTAL_NOT_AVAILABLE"}
    assert shop.is_right("totals")
    print(shop.session.count, "\n".join(shop.spark.log))
