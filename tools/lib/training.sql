-- Report a pgbench run, whose transaction log is in the table transactions, as a
-- trial: each second a training step, every three seconds a validation.

CREATE TEMP VIEW finished AS
SELECT to_timestamp(epoch + microseconds / 1e6) AS at,
       latency / 1e3 AS milliseconds,
       floor(epoch + microseconds / 1e6 - min(epoch + microseconds / 1e6) OVER ()) AS second
FROM transactions;

SELECT metrics_report(:trial, 'training', metrics, steps_completed => steps, report_time => at)
FROM (
    SELECT max(at) AS at,
           (sum(count(*)) OVER (ORDER BY second))::int AS steps,
           jsonb_build_object(
               'tps', count(*),
               'latency_avg_ms', avg(milliseconds),
               'latency_p95_ms', percentile_cont(0.95) WITHIN GROUP (ORDER BY milliseconds)) AS metrics
    FROM finished
    WHERE second < (SELECT max(second) FROM finished)
    GROUP BY second
    ORDER BY second) AS step;

SELECT metrics_report(:trial, 'validation', metrics, steps_completed => steps, report_time => at)
FROM (
    SELECT max(at) AS at,
           (sum(count(*)) OVER (ORDER BY floor(second / 3)))::int AS steps,
           jsonb_build_object(
               'latency_p95_ms', percentile_cont(0.95) WITHIN GROUP (ORDER BY milliseconds),
               'latency_max_ms', max(milliseconds)) AS metrics
    FROM finished
    WHERE second < (SELECT max(second) FROM finished)
    GROUP BY floor(second / 3)
    ORDER BY floor(second / 3)) AS step;
