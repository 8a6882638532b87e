-- How many orders of a quarter had a line that came late, by priority?
SELECT o_orderpriority, COUNT(*) AS order_count
FROM orders
WHERE o_orderdate >= :first_day AND o_orderdate < :end_day
  AND EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
GROUP BY o_orderpriority
ORDER BY o_orderpriority
