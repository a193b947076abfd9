-- How long a row of a new key takes from the commit of its report to metrics.
-- See bench/worker.
CREATE EXTENSION metrics_ext;
SELECT metrics_create_store() \gset
SELECT metrics_register_trial(1) \gset
SELECT metrics_route_group('k%') \gset
CREATE TABLE latency (pause double precision, ms double precision);

-- With a pause before each report that is long enough, the worker has left.
CREATE PROCEDURE measure(keys integer, pause double precision) LANGUAGE plpgsql AS $$
DECLARE
    key text;
    committed timestamptz;
BEGIN
    FOR n IN 1 .. keys LOOP
        PERFORM pg_sleep(pause);
        key := format('k%s_%s', pause::integer, n);
        PERFORM metrics_report(1, key, '{"a": 1}');
        COMMIT;
        committed := clock_timestamp();
        WHILE NOT EXISTS (SELECT FROM metrics.metrics WHERE partition_type = key) LOOP
            COMMIT;
            PERFORM pg_sleep(0.001);
        END LOOP;
        INSERT INTO latency VALUES (pause, extract(epoch FROM clock_timestamp() - committed) * 1000);
        COMMIT;
    END LOOP;
END $$;
CALL measure(:keys, 0);
CALL measure(greatest(:keys / 5, 1), 1.5);

SELECT format('%s, %s: median %s ms, at most 100: %s; 99 %% %s ms, at most 500: %s', :'what',
    CASE pause WHEN 0 THEN 'a worker at work' ELSE 'none' END,
    round(l.p50::numeric, 1), CASE WHEN l.p50 <= 100 THEN 'OK' ELSE 'NOT MET' END,
    round(l.p99::numeric, 1), CASE WHEN l.p99 <= 500 THEN 'OK' ELSE 'NOT MET' END)
FROM (SELECT pause, (metrics_percentiles(ms)).* FROM latency GROUP BY pause) l ORDER BY pause;
