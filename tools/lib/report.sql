-- What the demo's trial measured, and where it lies.

\pset linestyle unicode
\pset border 1
\pset footer off
\pset null ''

-- Every value of the trial with its unit.  Sizes are stored in bytes.
CREATE TEMP VIEW reading AS
SELECT series.group_name, concat_ws(' ', series.name, series.device) AS name, unit, at,
       value / coalesce(divisor, 1) AS value
FROM (
    SELECT s.group_name, s.name, s.device, r.end_time AS at, r.value
    FROM metrics_profiling_series(:trial) AS s,
         metrics_profiling_rows(:trial, s.group_name, s.name, s.agent, max_rows => 10000) AS r
    WHERE r.device IS NOT DISTINCT FROM s.device
    UNION ALL
    SELECT n.group_name, n.name, NULL, t.end_time, (t.value #>> '{}')::float8
    FROM metrics_names(1) AS n,
         metrics_timeseries(:trial, n.group_name, n.name, 10000) AS t
    WHERE n.group_name IN ('training', 'validation') AND n.type = 'number') AS series
LEFT JOIN (VALUES
    ('cpu_util_simple', '%', 1), ('core_util', '%', 1), ('cpu_load_1m', 'tasks', 1),
    ('memory_free', 'GB', 1e9), ('memory_dirty', 'MB', 1e6),
    ('disk_iops', '1/s', 1), ('disk_util', '%', 1),
    ('disk_throughput_read', 'MB/s', 1e6), ('disk_throughput_write', 'MB/s', 1e6),
    ('net_throughput_recv', 'kB/s', 1e3), ('net_throughput_sent', 'kB/s', 1e3),
    ('tps', '1/s', 1), ('latency_avg_ms', 'ms', 1), ('latency_p95_ms', 'ms', 1),
    ('latency_max_ms', 'ms', 1)) AS known (name, unit, divisor) USING (name);

-- Numbers of one metric get the same number of decimals: three digits that count.
CREATE FUNCTION pg_temp.show(value float8, largest float8) RETURNS text
RETURN lpad(to_char(value, 'FM999G999G999G990' || CASE
    WHEN largest >= 100 OR largest = 0 THEN ''
    WHEN largest >= 10 THEN 'D0'
    WHEN largest >= 1 THEN 'D00'
    ELSE 'D000' END), 6);

\echo
\pset tuples_only on
SELECT format('metrics_ext %s on PostgreSQL %s, trial %s: %s reports, %s to %s', extversion,
              split_part(current_setting('server_version'), ' ', 1), :trial, count(*),
              to_char(min(end_time), 'HH24:MI:SS'), to_char(max(end_time), 'HH24:MI:SS'))
FROM metrics, pg_extension
WHERE trial_id = :trial AND extname = 'metrics_ext'
GROUP BY extversion;
\pset tuples_only off

\echo 'Metrics'
SELECT group_name AS "group", name AS metric, unit, count(*),
       pg_temp.show(percentile_cont(0.5) WITHIN GROUP (ORDER BY value), max(value)) AS p50,
       pg_temp.show(percentile_cont(0.95) WITHIN GROUP (ORDER BY value), max(value)) AS p95,
       pg_temp.show(percentile_cont(0.99) WITHIN GROUP (ORDER BY value), max(value)) AS p99,
       pg_temp.show(max(value), max(value)) AS max,
       string_agg(substr('▁▂▃▄▅▆▇█', 1 + coalesce(height, 0), 1), '' ORDER BY at) AS "over time"
FROM (
    SELECT *, round(7 * (value - min(value) OVER metric)
                      / nullif(max(value) OVER metric - min(value) OVER metric, 0))::int AS height
    FROM reading
    WINDOW metric AS (PARTITION BY group_name, name)) AS scaled
GROUP BY group_name, name, unit
ORDER BY array_position('{cpu,memory,disk,network,training,validation}', group_name), group_name, name;

\echo 'Partitions of metrics; those of core_0 and so on appeared by themselves'
SELECT partition_key AS key, relname AS table, rows, pg_size_pretty(size) AS size, groups,
       created_by AS "made by", to_char(created, 'HH24:MI:SS.MS') AS at
FROM metrics_partitions
JOIN pg_class ON pg_class.oid = partition
LEFT JOIN (SELECT tableoid, count(*) AS rows, string_agg(DISTINCT metric_group, ', ') AS groups
           FROM metrics GROUP BY tableoid) AS m ON m.tableoid = partition
WHERE parent = 'metrics'::regclass
ORDER BY key;

\echo 'Summary of the trial, kept with every report'
SELECT CASE path WHEN 'avg_metrics' THEN 'training' WHEN 'validation_metrics' THEN 'validation' ELSE path END AS "group",
       name AS metric, (s ->> 'count')::int AS count,
       pg_temp.show((s ->> 'min')::float8, (s ->> 'max')::float8) AS min,
       pg_temp.show((s ->> 'mean')::float8, (s ->> 'max')::float8) AS mean,
       pg_temp.show((s ->> 'max')::float8, (s ->> 'max')::float8) AS max,
       pg_temp.show((s ->> 'last')::float8, (s ->> 'max')::float8) AS last
FROM trials, jsonb_each(summary_metrics) AS g (path, names), jsonb_each(names) AS n (name, s)
WHERE trials.id = :trial
ORDER BY 1, 2;

\pset tuples_only on
SELECT format('Best validation: %s = %s ms after %s of %s transactions.', searcher_metric,
              ltrim(pg_temp.show(searcher_metric_value, searcher_metric_value)),
              to_char(v.total_batches, 'FM999G999G999'), to_char(t.total_batches, 'FM999G999G999'))
FROM trials AS t
JOIN metrics AS v ON v.partition_type = 'VALIDATION' AND v.id = t.best_validation_id
WHERE t.id = :trial;
