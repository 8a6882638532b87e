-- How did the share of a nation in a region's market for a type of part change over two years?
SELECT o_year, SUM(CASE WHEN nation = :nation THEN volume ELSE 0 END) / SUM(volume) AS mkt_share
FROM (
    SELECT
        EXTRACT(YEAR FROM o_orderdate) AS o_year,
        l_extendedprice * (1 - l_discount) AS volume,
        seller.n_name AS nation
    FROM part
    JOIN lineitem ON l_partkey = p_partkey
    JOIN supplier ON s_suppkey = l_suppkey
    JOIN orders ON o_orderkey = l_orderkey
    JOIN customer ON c_custkey = o_custkey
    JOIN nation AS buyer ON buyer.n_nationkey = c_nationkey
    JOIN region ON r_regionkey = buyer.n_regionkey
    JOIN nation AS seller ON seller.n_nationkey = s_nationkey
    WHERE r_name = :region AND p_type = :type AND o_orderdate BETWEEN :first_day AND :last_day
) AS sold
GROUP BY o_year
ORDER BY o_year
