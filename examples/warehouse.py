"""The views of a small web shop's warehouse, for `examples.lineage`: tables, staging, marts, dashboards.

Written for this example in the dialect of Spark, in the manner of a dbt project. The same SQL runs on DuckDB, which is
how the test finds out what really depends on what.
"""

TABLES = {
    "customers": {"id": "bigint", "email": "string", "country": "string", "signed_up": "date", "referrer": "bigint"},
    "orders": {"id": "bigint", "customer_id": "bigint", "ordered_on": "date", "status": "string", "discount": "double"},
    "order_lines": {"order_id": "bigint", "product_id": "bigint", "quantity": "bigint", "unit_price": "double"},
    "products": {"id": "bigint", "title": "string", "category": "string", "unit_cost": "double", "weight": "double"},
    "payments": {"order_id": "bigint", "method": "string", "amount": "double", "state": "string"},
    "returned": {"order_id": "bigint", "product_id": "bigint", "quantity": "bigint", "reason": "string"},
}

VIEWS = {
    "stg_customers": "SELECT id AS customer_id, email, upper(country) AS country, signed_up FROM customers",
    "stg_orders": """
        SELECT id AS order_id, customer_id, ordered_on, coalesce(discount, 0) AS discount
        FROM orders WHERE status <> 'cancelled'""",
    "stg_lines": """
        SELECT l.order_id, l.product_id, l.quantity, l.quantity * l.unit_price AS revenue,
               l.quantity * p.unit_cost AS cost, l.quantity * p.weight AS kilograms
        FROM order_lines l JOIN products p ON p.id = l.product_id""",
    "order_totals": """
        WITH paid AS (SELECT order_id, sum(amount) AS paid FROM payments WHERE state = 'settled' GROUP BY order_id),
             goods AS (SELECT order_id, sum(revenue) AS gross, sum(kilograms) AS kilograms
                       FROM stg_lines GROUP BY order_id)
        SELECT o.order_id, o.customer_id, o.ordered_on, g.gross - o.discount AS net, g.kilograms,
               coalesce(p.paid, 0) AS paid
        FROM stg_orders o JOIN goods g ON g.order_id = o.order_id LEFT JOIN paid p ON p.order_id = o.order_id""",
    "customer_value": """
        SELECT t.customer_id, c.country, count(*) AS orders, sum(t.net) AS lifetime_value
        FROM order_totals t JOIN stg_customers c ON c.customer_id = t.customer_id
        GROUP BY t.customer_id, c.country""",
    "product_margin": """
        SELECT l.product_id, p.title, p.category, sum(l.revenue) - sum(l.cost) AS margin, sum(l.quantity) AS sold
        FROM stg_lines l JOIN products p ON p.id = l.product_id GROUP BY l.product_id, p.title, p.category""",
    "return_rate": """
        SELECT m.product_id, m.title, sum(r.quantity) / m.sold AS rate
        FROM product_margin m JOIN returned r ON r.product_id = m.product_id GROUP BY m.product_id, m.title, m.sold""",
    "dash_revenue": """
        SELECT month(ordered_on) AS month, sum(net) AS revenue FROM order_totals GROUP BY month(ordered_on)""",
    "dash_open_bills": "SELECT order_id, net - paid AS still_open FROM order_totals WHERE net - paid > 0.005",
    "dash_best_customers": """
        SELECT c.email, v.country, v.lifetime_value FROM customer_value v
        JOIN stg_customers c ON c.customer_id = v.customer_id WHERE v.orders >= 2""",
    "dash_margin": "SELECT category, sum(margin) AS margin FROM product_margin GROUP BY category",
    "dash_freight": """
        SELECT month(ordered_on) AS month, sum(kilograms) AS kilograms FROM order_totals GROUP BY month(ordered_on)""",
    "dash_complaints": "SELECT title, rate FROM return_rate WHERE rate > 0.1",
}
