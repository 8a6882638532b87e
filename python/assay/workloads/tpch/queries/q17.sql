-- What would be lost in a year if small orders of a part were no longer filled?
SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly
FROM lineitem
JOIN part ON p_partkey = l_partkey
WHERE p_brand = :brand
  AND p_container = :container
  AND l_quantity < (SELECT 0.2 * AVG(sold.l_quantity) FROM lineitem AS sold WHERE sold.l_partkey = p_partkey)
