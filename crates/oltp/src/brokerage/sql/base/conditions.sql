-- The consistency conditions, each one row: how many were checked, how many break it, one of these as text. Sums of counts are
-- decimals, because SQL Server's sum of integers is an integer; the parts are stacked and aggregated again, a full join that
-- every database knows.

-- name: condition.1
-- title: b_num_trades = count of the completed trades of the broker's accounts
SELECT count(*), coalesce(sum(bad), 0),
    min(CASE WHEN bad = 1 THEN concat('broker ', b_id, ' (rows ', brokers, '): b_num_trades ', counted, ', trades ', trades) END)
FROM (
    SELECT b_id, brokers, counted, trades, CASE WHEN brokers = 1 AND counted = trades THEN 0 ELSE 1 END AS bad
    FROM (
        SELECT b_id, sum(brokers) AS brokers, sum(counted) AS counted, sum(trades) AS trades
        FROM (
            SELECT b_id, 1 AS brokers, b_num_trades AS counted, 0 AS trades FROM broker
            UNION ALL
            SELECT ca_b_id, 0, 0, count(*) FROM trade JOIN customer_account ON ca_id = t_ca_id
            WHERE t_st_id = 'CMPT'
            GROUP BY ca_b_id
        ) AS part
        GROUP BY b_id
    ) AS joined
) AS judged

-- name: condition.2
-- title: b_comm_total = sum(t_comm) of the completed trades of the broker's accounts
SELECT count(*), coalesce(sum(bad), 0),
    min(CASE WHEN bad = 1 THEN concat('broker ', b_id, ' (rows ', brokers, '): b_comm_total ', total, ', sum(t_comm) ', comm) END)
FROM (
    SELECT b_id, brokers, total, comm, CASE WHEN brokers = 1 AND total = comm THEN 0 ELSE 1 END AS bad
    FROM (
        SELECT b_id, sum(brokers) AS brokers, sum(total) AS total, sum(comm) AS comm
        FROM (
            SELECT b_id, 1 AS brokers, b_comm_total AS total, 0 AS comm FROM broker
            UNION ALL
            SELECT ca_b_id, 0, 0, sum(t_comm) FROM trade JOIN customer_account ON ca_id = t_ca_id
            WHERE t_st_id = 'CMPT'
            GROUP BY ca_b_id
        ) AS part
        GROUP BY b_id
    ) AS joined
) AS judged

-- name: condition.3
-- title: hs_qty = sum(h_qty) of the account's lots of the security
SELECT count(*), coalesce(sum(bad), 0),
    min(CASE WHEN bad = 1 THEN concat('account ', ca_id, ', ', symb, ' (rows ', summaries, '): hs_qty ', held, ', sum(h_qty) ', lots) END)
FROM (
    SELECT ca_id, symb, summaries, held, lots, CASE WHEN summaries = 1 AND held = lots THEN 0 ELSE 1 END AS bad
    FROM (
        SELECT ca_id, symb, sum(summaries) AS summaries, sum(held) AS held, sum(lots) AS lots
        FROM (
            SELECT hs_ca_id AS ca_id, hs_s_symb AS symb, 1 AS summaries, hs_qty AS held, 0 AS lots FROM holding_summary
            UNION ALL
            SELECT h_ca_id, h_s_symb, 0, 0, sum(h_qty) FROM holding GROUP BY h_ca_id, h_s_symb
        ) AS part
        GROUP BY ca_id, symb
    ) AS joined
) AS judged
