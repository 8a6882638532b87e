-- How many sellers without complaints offer parts of eight sizes, brand and type by brand and type?
SELECT p_brand, p_type, p_size, COUNT(DISTINCT ps_suppkey) AS supplier_cnt
FROM partsupp
JOIN part ON p_partkey = ps_partkey
WHERE p_brand <> :brand
  AND p_type NOT LIKE :type_pattern
  AND p_size IN (:size_1, :size_2, :size_3, :size_4, :size_5, :size_6, :size_7, :size_8)
  AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
GROUP BY p_brand, p_type, p_size
ORDER BY supplier_cnt DESC, p_brand, p_type, p_size
