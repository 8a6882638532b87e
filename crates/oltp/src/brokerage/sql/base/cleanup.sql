-- What an earlier run left open is cancelled before the next begins: nobody would execute it. Times are those of the trades, so that
-- the rows do not depend on when this is done.

-- name: submitted
INSERT INTO trade_history (th_t_id, th_dts, th_st_id)
SELECT tr_t_id, t_dts, 'SBMT' FROM trade_request JOIN trade ON t_id = tr_t_id

-- name: requests
DELETE FROM trade_request

-- name: cancelled
INSERT INTO trade_history (th_t_id, th_dts, th_st_id)
SELECT t_id, t_dts, 'CNCL' FROM trade WHERE t_st_id IN ('PNDG', 'SBMT')

-- name: trades
UPDATE trade SET t_st_id = 'CNCL' WHERE t_st_id IN ('PNDG', 'SBMT')
