-- Which parts are a considerable share of the stock of a nation's sellers?
SELECT ps_partkey, SUM(ps_supplycost * ps_availqty) AS value
FROM partsupp
JOIN supplier ON s_suppkey = ps_suppkey
JOIN nation ON n_nationkey = s_nationkey
WHERE n_name = :nation
GROUP BY ps_partkey
HAVING SUM(ps_supplycost * ps_availqty) > (
    SELECT SUM(stock.ps_supplycost * stock.ps_availqty) * :fraction
    FROM partsupp AS stock
    JOIN supplier AS seller ON seller.s_suppkey = stock.ps_suppkey
    JOIN nation AS home ON home.n_nationkey = seller.s_nationkey
    WHERE home.n_name = :nation
)
ORDER BY value DESC
