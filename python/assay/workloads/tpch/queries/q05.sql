-- What did sellers earn in a year from customers of their own nation, by nation of a region?
SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM region
JOIN nation ON n_regionkey = r_regionkey
JOIN customer ON c_nationkey = n_nationkey
JOIN orders ON o_custkey = c_custkey
JOIN lineitem ON l_orderkey = o_orderkey
JOIN supplier ON s_suppkey = l_suppkey AND s_nationkey = c_nationkey
WHERE r_name = :region AND o_orderdate >= :first_day AND o_orderdate < :end_day
GROUP BY n_name
ORDER BY revenue DESC
