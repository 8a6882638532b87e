-- Who placed the largest orders by quantity?
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, SUM(l_quantity) AS sum_qty
FROM customer
JOIN orders ON o_custkey = c_custkey
JOIN lineitem ON l_orderkey = o_orderkey
WHERE o_orderkey IN (
    SELECT ordered.l_orderkey FROM lineitem AS ordered GROUP BY ordered.l_orderkey HAVING SUM(ordered.l_quantity) > :quantity
)
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
ORDER BY o_totalprice DESC, o_orderdate
LIMIT 100
