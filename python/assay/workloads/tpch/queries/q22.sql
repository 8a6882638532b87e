-- Which countries have customers with money and without orders?
SELECT cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal
FROM (
    SELECT SUBSTRING(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal
    FROM customer
    WHERE SUBSTRING(c_phone FROM 1 FOR 2)
        IN (:code_1, :code_2, :code_3, :code_4, :code_5, :code_6, :code_7)
      AND c_acctbal > (
          SELECT AVG(known.c_acctbal)
          FROM customer AS known
          WHERE known.c_acctbal > 0.00
            AND SUBSTRING(known.c_phone FROM 1 FOR 2)
                IN (:code_1, :code_2, :code_3, :code_4, :code_5, :code_6, :code_7)
      )
      AND NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)
) AS idle
GROUP BY cntrycode
ORDER BY cntrycode
