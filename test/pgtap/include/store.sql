-- Where each file of this folder starts, inside its transaction: the
-- extension, a store, and the words that the tests are written in.
SET client_min_messages TO warning;
CREATE EXTENSION metrics_ext;
SELECT metrics_create_store() AS store \gset
SET search_path TO metrics, metrics_bi, public;

CREATE SCHEMA helper;

-- Run a statement for its effect; pgTAP's output stays free of its result.
CREATE FUNCTION helper.run(statement text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
END $$;

-- Everything a report may change, as one value to compare before and after.
CREATE FUNCTION helper.state() RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'metrics', (SELECT jsonb_agg(to_jsonb(m) ORDER BY m.id) FROM metrics.metrics m),
        'trials', (SELECT jsonb_agg(to_jsonb(t) ORDER BY t.id) FROM metrics.trials t),
        'runs', (SELECT jsonb_agg(to_jsonb(r) ORDER BY r.run_id) FROM metrics.pipeline_runs r),
        'stages', (SELECT jsonb_agg(to_jsonb(s) ORDER BY s.run_id, s.stage_name) FROM metrics.pipeline_stages s),
        'operators', (SELECT jsonb_agg(to_jsonb(o) ORDER BY o.ordinal) FROM metrics.pipeline_operators o))
$$;

-- A test: the statement fails with this SQLSTATE, a message that begins so
-- (and a hint where one is due), and it has changed nothing.
CREATE FUNCTION helper.refuses(
    statement text, expected_state text, message_start text, description text,
    wants_hint boolean DEFAULT true)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    before jsonb := helper.state();
    got_state text := 'no error';
    got_message text := '';
    got_hint text := '';
    good boolean;
BEGIN
    BEGIN
        EXECUTE statement;
    EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS got_state = RETURNED_SQLSTATE,
            got_message = MESSAGE_TEXT, got_hint = PG_EXCEPTION_HINT;
    END;
    good := got_state = expected_state
        AND starts_with(got_message, message_start)
        AND (NOT wants_hint OR got_hint <> '')
        AND helper.state() IS NOT DISTINCT FROM before;
    RETURN ok(good, description) || CASE WHEN good THEN '' ELSE E'\n' || diag(format(
        E'want: %s %s\ngot:  %s %s\nhint: %s\nstate unchanged: %s', expected_state, message_start,
        got_state, got_message, got_hint, helper.state() IS NOT DISTINCT FROM before)) END;
END $$;

-- The CONTEXT lines of the error that a statement ends in.
CREATE FUNCTION helper.error_context(statement text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    context text := '';
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
    RETURN context;
END $$;

-- The type of a value, as summaries name it.
CREATE FUNCTION helper.value_type(value jsonb) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN jsonb_typeof(value) <> 'string' THEN jsonb_typeof(value)
        WHEN value #>> '{}' IN ('NaN', 'Infinity', '-Infinity') THEN 'number'
        WHEN value #>> '{}' ~ ('^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}'
                               '([.][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?$') THEN 'date'
        ELSE 'string' END
$$;

-- The unarchived rows of a trial that its summary counts, by summary key.
CREATE FUNCTION helper.summarised_rows(
    trial integer, OUT summary_key text, OUT id bigint, OUT end_time timestamptz, OUT reported jsonb)
RETURNS SETOF record
LANGUAGE sql STABLE AS $$
    SELECT CASE m.metric_group WHEN 'training' THEN 'avg_metrics'
                               WHEN 'validation' THEN 'validation_metrics'
                               ELSE m.metric_group END,
           m.id, m.end_time,
           CASE m.metric_group WHEN 'validation' THEN m.metrics -> 'validation_metrics'
                               ELSE m.metrics -> 'avg_metrics' END
    FROM metrics.metrics m
    WHERE m.trial_id = trial AND NOT m.archived AND m.partition_type <> 'PROFILING'
$$;

-- What the summary of a trial has to be: written from the specification, and
-- sharing nothing with the extension. "magnitude", the sum of the absolute
-- values, is there for the tolerance and is no part of a summary.
CREATE FUNCTION helper.expected_summary(trial integer) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    WITH line AS MATERIALIZED (
        SELECT * FROM helper.summarised_rows(trial)
    ), newest AS (
        SELECT DISTINCT ON (summary_key) summary_key, reported
        FROM line ORDER BY summary_key, end_time DESC, id DESC
    ), value AS (
        SELECT summary_key, e.key AS name, e.value, helper.value_type(e.value) AS type
        FROM line CROSS JOIN LATERAL jsonb_each(reported) e
    ), typed AS (
        SELECT summary_key, name,
               CASE WHEN min(type) = max(type) THEN min(type) ELSE 'string' END AS type
        FROM value GROUP BY 1, 2
    ), number AS (
        SELECT v.summary_key, v.name, count(*) AS count,
               bool_or(v.value #>> '{}' = 'NaN') AS has_nan,
               min((v.value #>> '{}')::numeric) AS min, max((v.value #>> '{}')::numeric) AS max,
               sum((v.value #>> '{}')::numeric) AS sum,
               sum(abs((v.value #>> '{}')::numeric)) AS magnitude
        FROM value v JOIN typed t USING (summary_key, name)
        WHERE t.type = 'number' GROUP BY 1, 2
    ), entry AS (
        SELECT t.summary_key, t.name,
               jsonb_build_object('type', t.type, 'last', coalesce(n.reported -> t.name, 'null'))
               || CASE WHEN s.count IS NULL THEN '{}' ELSE jsonb_build_object(
                      'count', s.count, 'magnitude', to_jsonb(s.magnitude),
                      'min', CASE WHEN s.has_nan THEN '"NaN"' ELSE to_jsonb(s.min) END,
                      'max', CASE WHEN s.has_nan THEN '"NaN"' ELSE to_jsonb(s.max) END,
                      'sum', to_jsonb(s.sum), 'mean', to_jsonb(s.sum / s.count)) END AS entry
        FROM typed t
        JOIN newest n USING (summary_key)
        LEFT JOIN number s USING (summary_key, name)
    )
    SELECT coalesce(jsonb_object_agg(g.summary_key, coalesce(e.entries, '{}')), '{}')
    FROM newest g
    LEFT JOIN (SELECT summary_key, jsonb_object_agg(name, entry) AS entries
               FROM entry GROUP BY summary_key) e USING (summary_key)
$$;

-- Whether two sums or means agree; those that are no finite numbers have to
-- be the same.
CREATE FUNCTION helper.close(have jsonb, want jsonb, tolerance numeric) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN jsonb_typeof(have) = 'number' AND jsonb_typeof(want) = 'number'
            THEN abs((have #>> '{}')::numeric - (want #>> '{}')::numeric) <= tolerance
        ELSE have IS NOT DISTINCT FROM want END
$$;

-- How a stored summary differs from the expected one; NULL if it does not.
-- type, count, min, max and last are exact; sum and mean may differ by
-- 1e-12 of the sum of the absolute values.
CREATE FUNCTION helper.summary_difference(stored jsonb, expected jsonb) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    WITH have AS (
        SELECT g.key AS summary_key, e.key AS name, e.value AS entry
        FROM jsonb_each(stored) g CROSS JOIN LATERAL jsonb_each(g.value) e
    ), want AS (
        SELECT g.key AS summary_key, e.key AS name, e.value AS entry
        FROM jsonb_each(expected) g CROSS JOIN LATERAL jsonb_each(g.value) e
    ), compared AS (
        SELECT summary_key, name, h.entry AS have, w.entry AS want,
               coalesce((w.entry ->> 'magnitude')::numeric, 0) * 1e-12 AS tolerance
        FROM have h FULL JOIN want w USING (summary_key, name)
    )
    SELECT string_agg(difference, E'\n' ORDER BY difference) FROM (
        SELECT format('group %s only %s', key, CASE WHEN a.key IS NULL THEN 'expected' ELSE 'stored' END)
               AS difference
        FROM jsonb_object_keys(stored) a(key) FULL JOIN jsonb_object_keys(expected) b(key) USING (key)
        WHERE a.key IS NULL OR b.key IS NULL
        UNION ALL
        SELECT format('%s.%s: have %s, want %s', summary_key, name, have, want - 'magnitude')
        FROM compared
        WHERE have - 'sum' - 'mean' IS DISTINCT FROM want - 'sum' - 'mean' - 'magnitude'
           OR NOT helper.close(have -> 'sum', want -> 'sum', tolerance)
           OR NOT helper.close(have -> 'mean', want -> 'mean', tolerance)
    ) d
$$;

-- How the stored row of a trial differs from what its unarchived rows say:
-- summary, batches, latest and best validation. NULL if it does not.
CREATE FUNCTION helper.trial_difference(trial integer) RETURNS text
LANGUAGE sql STABLE AS $$
    WITH t AS (
        SELECT * FROM metrics.trials WHERE id = trial
    ), v AS (
        SELECT m.id, m.end_time,
               (m.metrics -> 'validation_metrics' ->> t.searcher_metric)::float8 AS value,
               CASE WHEN t.smaller_is_better THEN 1 ELSE -1 END AS sign
        FROM t JOIN metrics.metrics m ON m.trial_id = t.id
        WHERE m.partition_type = 'VALIDATION' AND NOT m.archived
          AND m.metrics -> 'validation_metrics' ->> t.searcher_metric IS NOT NULL
    ), want AS (
        SELECT (SELECT coalesce(max(m.total_batches), 0) FROM metrics.metrics m
                WHERE m.trial_id = trial AND NOT m.archived AND m.partition_type <> 'PROFILING')
                   AS total_batches,
               (SELECT v.id FROM v ORDER BY v.end_time DESC, v.id DESC LIMIT 1) AS latest,
               b.id AS best, b.value, b.value * b.sign AS signed
        FROM (VALUES (1)) one
        LEFT JOIN (SELECT * FROM v ORDER BY v.value * v.sign, v.id LIMIT 1) b ON true
    )
    SELECT nullif(concat_ws(E'\n',
        helper.summary_difference(t.summary_metrics, helper.expected_summary(trial)),
        CASE WHEN t.total_batches <> want.total_batches
             THEN format('total_batches: have %s, want %s', t.total_batches, want.total_batches) END,
        CASE WHEN t.latest_validation_id IS DISTINCT FROM want.latest
             THEN format('latest_validation_id: have %s, want %s', t.latest_validation_id, want.latest) END,
        CASE WHEN (t.best_validation_id, t.searcher_metric_value, t.searcher_metric_value_signed)
                  IS DISTINCT FROM (want.best, want.value, want.signed)
             THEN format('best validation: have %s %s %s, want %s %s %s', t.best_validation_id,
                         t.searcher_metric_value, t.searcher_metric_value_signed,
                         want.best, want.value, want.signed) END), '')
    FROM t, want
$$;

-- A test: the row of a trial is what its unarchived rows say.
CREATE FUNCTION helper.holds(trial integer, description text) RETURNS text
LANGUAGE sql AS $$
    SELECT is(helper.trial_difference(trial), NULL, description)
$$;

-- The summary entry of a metric, without what a test does not name.
CREATE FUNCTION helper.entry(trial integer, summary_key text, name text) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT summary_metrics -> summary_key -> name FROM metrics.trials WHERE id = trial
$$;

-- Report, and return the row as it is stored then.
CREATE FUNCTION helper.report(
    trial integer, metric_group text, metrics jsonb, steps integer DEFAULT NULL,
    run integer DEFAULT 0, report_time timestamptz DEFAULT NULL, batch_metrics jsonb DEFAULT NULL)
RETURNS metrics.metrics
LANGUAGE plpgsql AS $$
DECLARE
    reported bigint;
    stored metrics.metrics;
BEGIN
    reported := metrics_report(trial, metric_group, metrics, steps, run, report_time, batch_metrics);
    SELECT * INTO STRICT stored FROM metrics.metrics m WHERE m.id = reported;
    RETURN stored;
END $$;

-- The partition that a row lies in.
CREATE FUNCTION helper.table_of(row_id bigint) RETURNS text
LANGUAGE sql VOLATILE AS $$
    SELECT c.relname::text FROM metrics.metrics m JOIN pg_class c ON c.oid = m.tableoid WHERE m.id = row_id
$$;

-- What comes of a statement where nothing can be written: ok, or a SQLSTATE.
CREATE FUNCTION helper.read_only(statement text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('transaction_read_only', 'on', true);
    EXECUTE statement;
    RAISE SQLSTATE 'ZZZZZ';
EXCEPTION
    WHEN SQLSTATE 'ZZZZZ' THEN RETURN 'ok';
    WHEN OTHERS THEN RETURN SQLSTATE;
END $$;

-- What comes of a statement of a role: ok, or a SQLSTATE.
CREATE FUNCTION helper.as_role(role name, statement text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    got text := 'ok';
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', role);
    BEGIN
        EXECUTE statement;
    EXCEPTION WHEN OTHERS THEN
        got := SQLSTATE;
    END;
    RESET ROLE;
    RETURN got;
END $$;
