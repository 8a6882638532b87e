-- How much more had been earned in a year without some discounts on small quantities?
SELECT SUM(l_extendedprice * l_discount) AS revenue
FROM lineitem
WHERE l_shipdate >= :first_day AND l_shipdate < :end_day
  AND l_discount BETWEEN :discount_low AND :discount_high
  AND l_quantity < :quantity
