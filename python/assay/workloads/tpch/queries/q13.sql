-- How many customers have how many orders, those with some words in their comment apart?
SELECT c_count, COUNT(*) AS custdist
FROM (
    SELECT c_custkey, COUNT(o_orderkey) AS c_count
    FROM customer
    LEFT JOIN orders ON o_custkey = c_custkey AND o_comment NOT LIKE :words_pattern
    GROUP BY c_custkey
) AS ordered
GROUP BY c_count
ORDER BY custdist DESC, c_count DESC
