-- What was shipped between two nations in each of two years?
SELECT supp_nation, cust_nation, l_year, SUM(volume) AS revenue
FROM (
    SELECT
        seller.n_name AS supp_nation,
        buyer.n_name AS cust_nation,
        EXTRACT(YEAR FROM l_shipdate) AS l_year,
        l_extendedprice * (1 - l_discount) AS volume
    FROM supplier
    JOIN lineitem ON l_suppkey = s_suppkey
    JOIN orders ON o_orderkey = l_orderkey
    JOIN customer ON c_custkey = o_custkey
    JOIN nation AS seller ON seller.n_nationkey = s_nationkey
    JOIN nation AS buyer ON buyer.n_nationkey = c_nationkey
    WHERE ((seller.n_name = :nation AND buyer.n_name = :other) OR (seller.n_name = :other AND buyer.n_name = :nation))
      AND l_shipdate BETWEEN :first_day AND :last_day
) AS shipped
GROUP BY supp_nation, cust_nation, l_year
ORDER BY supp_nation, cust_nation, l_year
