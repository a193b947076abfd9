-- The store's tables: B1 to B5, B32 to B33 as far as plain SQL sees them, B36.
BEGIN;
\ir include/store.sql
SELECT plan(56);

SELECT is(:'store'::text, 'metrics.metrics', 'metrics_create_store() returns the partitioned table');

-- The five queries of the source document, compared as sets. The same queries
-- stand to the letter in test/sql/source_document.sql.
SELECT set_eq($$
    SELECT column_name::text, data_type::text, is_nullable::text, column_default::text
    FROM information_schema.columns
    WHERE table_name = 'metrics' and column_name='total_batches'
$$, $$VALUES ('total_batches', 'integer', 'YES', NULL)$$,
    'B1: total_batches of the parent is nullable, without a default');
SELECT bag_eq($$
    SELECT column_name::text, data_type::text, is_nullable::text, column_default::text
    FROM information_schema.columns
    WHERE table_name IN ('raw_steps', 'raw_validations', 'generic_metrics') AND column_name = 'total_batches'
$$, $$VALUES ('total_batches', 'integer', 'NO', '0'), ('total_batches', 'integer', 'NO', '0'),
             ('total_batches', 'integer', 'NO', '0')$$,
    'B2: total_batches of the three older partitions is NOT NULL DEFAULT 0');
SELECT bag_eq($$
    SELECT table_name::text, column_name::text, data_type::text, is_nullable::text, column_default::text
    FROM information_schema.columns
    WHERE table_name IN ('metrics', 'raw_steps', 'raw_validations', 'generic_metrics') AND column_name = 'partition_type'
$$, $$VALUES ('generic_metrics', 'partition_type', 'text', 'NO', $q$'GENERIC'::text$q$),
             ('raw_steps', 'partition_type', 'text', 'NO', $q$'TRAINING'::text$q$),
             ('raw_validations', 'partition_type', 'text', 'NO', $q$'VALIDATION'::text$q$),
             ('metrics', 'partition_type', 'text', 'NO', $q$'GENERIC'::text$q$)$$,
    'B3: partition_type is text, NOT NULL, with a default a table');
SELECT bag_eq($$
    SELECT child.relname::text
    FROM pg_inherits
      JOIN pg_class parent ON pg_inherits.inhparent = parent.oid
      JOIN pg_class child ON pg_inherits.inhrelid   = child.oid
    WHERE parent.relname='metrics'
$$, $$VALUES ('generic_metrics'), ('raw_validations'), ('raw_steps'), ('system_metrics')$$,
    'B4: exactly four partitions');
SELECT bag_eq($$
    SELECT table_name::text, column_name::text, data_type::text, is_nullable::text, column_default::text
    FROM information_schema.columns
    WHERE table_name = 'system_metrics' AND column_name IN ('total_batches', 'partition_type')
$$, $$VALUES ('system_metrics', 'total_batches', 'integer', 'YES', NULL),
             ('system_metrics', 'partition_type', 'text', 'NO', $q$'PROFILING'::text$q$)$$,
    'B5: the profiling partition has a nullable total_batches and its own key as default');

-- Columns in their physical order (reference 1.2; ids are bigint).
CREATE FUNCTION helper.columns(relation regclass) RETURNS SETOF text
LANGUAGE sql STABLE AS $$
    SELECT concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod),
                     CASE WHEN a.attnotnull THEN 'not null' END,
                     'default ' || pg_get_expr(d.adbin, d.adrelid))
    FROM pg_attribute a
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum
$$;
SELECT results_eq($$SELECT helper.columns('metrics.metrics')$$, ARRAY[
    'trial_id integer not null', 'end_time timestamp with time zone', 'metrics jsonb',
    'total_batches integer', 'trial_run_id integer not null default 0',
    'archived boolean not null default false',
    $q$id bigint not null default nextval('metrics_id_seq'::regclass)$q$,
    'metric_group text', $q$partition_type text not null default 'GENERIC'::text$q$],
    'columns of metrics');
SELECT results_eq($$SELECT helper.columns('metrics.raw_steps')$$, ARRAY[
    'trial_id integer not null', 'end_time timestamp with time zone', 'metrics jsonb',
    'total_batches integer not null default 0', 'trial_run_id integer not null default 0',
    'archived boolean not null default false',
    $q$id bigint not null default nextval('metrics_id_seq'::regclass)$q$,
    $q$metric_group text not null default 'training'::text$q$,
    $q$partition_type text not null default 'TRAINING'::text$q$],
    'columns of raw_steps');
SELECT results_eq($$SELECT helper.columns('metrics.raw_validations')$$, ARRAY[
    $q$id bigint not null default nextval('metrics_id_seq'::regclass)$q$,
    'trial_id integer not null', 'end_time timestamp with time zone', 'metrics jsonb',
    'total_batches integer not null default 0', 'trial_run_id integer not null default 0',
    'archived boolean not null default false',
    $q$metric_group text not null default 'validation'::text$q$,
    $q$partition_type text not null default 'VALIDATION'::text$q$],
    'columns of raw_validations, id first');
SELECT results_eq($$SELECT helper.columns('metrics.generic_metrics')$$, ARRAY[
    'trial_id integer not null', 'end_time timestamp with time zone', 'metrics jsonb',
    'total_batches integer not null default 0', 'trial_run_id integer not null default 0',
    'archived boolean not null default false',
    $q$id bigint not null default nextval('metrics_id_seq'::regclass)$q$,
    'metric_group text not null', $q$partition_type text not null default 'GENERIC'::text$q$],
    'columns of generic_metrics');
SELECT results_eq($$SELECT helper.columns('metrics.system_metrics')$$, ARRAY[
    'trial_id integer not null', 'end_time timestamp with time zone', 'metrics jsonb',
    'total_batches integer', 'trial_run_id integer not null default 0',
    'archived boolean not null default false',
    $q$id bigint not null default nextval('metrics_id_seq'::regclass)$q$,
    $q$partition_type text not null default 'PROFILING'::text$q$, 'metric_group text'],
    'columns of system_metrics, the last two swapped');
SELECT results_eq($$SELECT split_part(c, ' ', 1) FROM helper.columns('metrics.trials') c$$, ARRAY[
    'id', 'experiment_id', 'run_id', 'total_batches', 'summary_metrics', 'summary_metrics_timestamp',
    'latest_validation_id', 'best_validation_id', 'searcher_metric', 'smaller_is_better',
    'searcher_metric_value', 'searcher_metric_value_signed'], 'columns of trials');

-- Constraints and indexes by name.
CREATE FUNCTION helper.constraints(relation regclass, kinds text) RETURNS SETOF text
LANGUAGE sql STABLE AS $$
    SELECT format('%s %s', conname, pg_get_constraintdef(oid))
    FROM pg_constraint
    WHERE conrelid = relation AND strpos(kinds, contype::text) > 0
    ORDER BY conname COLLATE "C"
$$;
SELECT is_empty($$SELECT * FROM helper.constraints('metrics.metrics', 'cfpux')$$,
    'the parent has no constraint of its own');
SELECT is_empty($$SELECT 1 FROM pg_index WHERE indrelid = 'metrics.metrics'::regclass$$,
    'the parent has no index of its own');
SELECT results_eq($$SELECT helper.constraints('metrics.raw_steps', 'pu')$$, ARRAY[
    'steps_trial_id_total_batches_run_id_unique UNIQUE (trial_id, total_batches, trial_run_id)'],
    'keys of raw_steps');
SELECT results_eq($$SELECT helper.constraints('metrics.raw_validations', 'pu')$$, ARRAY[
    'validations_pkey PRIMARY KEY (id)',
    'validations_trial_id_total_batches_run_id_unique UNIQUE (trial_id, total_batches, trial_run_id)'],
    'keys of raw_validations');
SELECT results_eq($$SELECT helper.constraints('metrics.generic_metrics', 'pu')$$, ARRAY[
    'generic_metrics_trial_id_total_batches_run_id_custom_type_uniqu UNIQUE (trial_id, total_batches, trial_run_id, metric_group)'],
    'keys of generic_metrics, under the name cut at 63 bytes');
SELECT is_empty($$SELECT helper.constraints('metrics.system_metrics', 'pu')$$,
    'system_metrics has no unique key');
SELECT results_eq($$SELECT helper.constraints('metrics.' || t, 'f')
                    FROM unnest(ARRAY['raw_steps', 'raw_validations', 'generic_metrics', 'system_metrics']) t$$,
    ARRAY['steps_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES trials(id) ON DELETE CASCADE',
          'raw_validations_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES trials(id) ON DELETE CASCADE',
          'generic_metrics_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES trials(id) ON DELETE CASCADE',
          'system_metrics_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES trials(id) ON DELETE CASCADE'],
    'B32: every partition references trials ON DELETE CASCADE');
SELECT results_eq($$SELECT t || ' ' || string_agg(conname::text COLLATE "default", ' ' ORDER BY conname)
                    FROM unnest(ARRAY['raw_steps', 'raw_validations', 'generic_metrics', 'system_metrics']) t
                    JOIN pg_constraint ON conrelid = ('metrics.' || t)::regclass AND contype = 'c'
                    GROUP BY t ORDER BY t$$,
    ARRAY['generic_metrics custom_type_check partition_type_check',
          'raw_steps custom_type_check partition_type_check',
          'raw_validations custom_type_check partition_type_check',
          'system_metrics partition_type_check'],
    'CHECK constraints of the partitions');
SELECT ok(bool_and(convalidated), 'every constraint of the store is valid')
FROM pg_constraint WHERE connamespace = 'metrics'::regnamespace;
SELECT bag_has($$SELECT indexrelid::regclass::text FROM pg_index
                 WHERE indrelid = ANY ('{raw_steps,raw_validations,generic_metrics}'::regclass[])$$,
    $$VALUES ('steps_archived'), ('ix_validations_trial_id'), ('validations_archived'), ('generic_metrics_archived')$$,
    'indexes of reference 1.2');
SELECT ok(EXISTS (SELECT 1 FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
                  WHERE i.indrelid = 'metrics.system_metrics'::regclass AND a.attname = 'trial_id'),
    'B30: system_metrics has an index that leads with the trial');
SELECT is(format_type(seqtypid, NULL), 'bigint', 'metrics_id_seq is a bigint sequence')
FROM pg_sequence WHERE seqrelid = 'metrics.metrics_id_seq'::regclass;
SELECT is((SELECT count(*)::int FROM pg_type WHERE typname = 'metric_partition_type'), 0,
    'the enum type of the layout before is not there');

-- What the store's other tables start with.
SELECT is((SELECT array_agg(version) FROM metrics_layout), (SELECT ARRAY[default_version] FROM pg_available_extensions WHERE name = 'metrics_ext'), 'the store carries its layout version');
SELECT bag_eq($$SELECT partition_key::text, kind::text FROM metrics_partition_kind$$,
    $$VALUES ('TRAINING', 'batch'), ('VALIDATION', 'batch'), ('GENERIC', 'batch'), ('PROFILING', 'time')$$,
    'the kinds of the four partition keys');
SELECT bag_eq($$SELECT metric_group::text, partition_key::text FROM metrics_route$$,
    $$VALUES ('training', 'TRAINING'), ('validation', 'VALIDATION'), ('cpu', 'PROFILING'), ('gpu', 'PROFILING'),
             ('memory', 'PROFILING'), ('disk', 'PROFILING'), ('network', 'PROFILING')$$,
    'the routes: training, validation and the five profiling groups');

-- The store is its owner's, never the extension's.
SELECT is_empty($$
    SELECT d.classid::regclass, d.objid FROM pg_depend d
    WHERE d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'metrics_ext')
      AND (d.classid = 'pg_class'::regclass AND d.objid IN (SELECT oid FROM pg_class WHERE relnamespace = 'metrics'::regnamespace)
           OR d.classid = 'pg_namespace'::regclass AND d.objid = 'metrics'::regnamespace)
$$, 'no store object is a member of the extension');
SELECT is_empty($$
    SELECT objoid FROM pg_init_privs WHERE classoid = 'pg_class'::regclass
      AND objoid IN (SELECT oid FROM pg_class WHERE relnamespace = 'metrics'::regnamespace)
$$, 'no store object stands in pg_init_privs');
SELECT is_empty($$
    SELECT a.attrelid::regclass, a.attname FROM pg_attribute a
    JOIN pg_depend d ON d.classid = 'pg_type'::regclass AND d.objid = a.atttypid AND d.deptype = 'e'
    WHERE a.attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'metrics'::regnamespace)
      AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'metrics_ext')
$$, 'no store column has a type of the extension');

-- Plain SQL against the store (reference 1.3).
SELECT metrics_register_trial(1) \gset
SELECT helper.refuses($$INSERT INTO metrics (trial_id, total_batches, metric_group, partition_type)
    VALUES (1, 1, 'x', 'FOO')$$, '23514', 'no partition of relation "metrics" found for row',
    'B33: an unknown partition key', false);
SELECT helper.refuses($$INSERT INTO metrics (trial_id, total_batches, metric_group, partition_type)
    VALUES (1, 1, 'cpu', 'profiling')$$, '23514', 'no partition of relation "metrics" found for row',
    'B33: a partition key in the wrong case', false);
SELECT helper.refuses(format($$INSERT INTO metrics (trial_id, metric_group, partition_type)
    VALUES (1, %L, %L)$$, g, p), '23502', format('null value in column "total_batches" of relation "%s"', t),
    'B33: total_batches left out through the parent, ' || p, false)
FROM (VALUES ('training', 'TRAINING', 'raw_steps'), ('validation', 'VALIDATION', 'raw_validations'),
             ('x', 'GENERIC', 'generic_metrics')) v(g, p, t);
SELECT lives_ok($$INSERT INTO raw_steps (trial_id) VALUES (1)$$,
    'B33: the partition itself has the defaults');
SELECT is((SELECT ROW(total_batches, metric_group, partition_type, archived, trial_run_id)::text
           FROM raw_steps), '(0,training,TRAINING,f,0)', 'B33: total_batches 0 when inserted there');
SELECT lives_ok($$INSERT INTO metrics (trial_id, total_batches, metric_group) VALUES (1, 5, 'x')$$,
    'B33: partition_type left out through the parent');
SELECT is((SELECT tableoid::regclass::text FROM metrics WHERE metric_group = 'x'), 'generic_metrics',
    'B33: means GENERIC');
SELECT helper.refuses(format($$INSERT INTO metrics (trial_id, total_batches, metric_group, partition_type)
    VALUES (1, 7, %L, %L)$$, g, p), '23514', format('new row for relation "%s" violates check constraint "custom_type_check"', t),
    format('B12: group %s in partition %s', g, p), false)
FROM (VALUES ('avg_metrics', 'GENERIC', 'generic_metrics'), ('validation_metrics', 'GENERIC', 'generic_metrics'),
             ('training', 'GENERIC', 'generic_metrics'), ('validation', 'GENERIC', 'generic_metrics'),
             ('x', 'TRAINING', 'raw_steps'), ('training', 'VALIDATION', 'raw_validations')) v(g, p, t);
SELECT helper.refuses($$INSERT INTO metrics (trial_id, total_batches) VALUES (1, 8)$$, '23502',
    'null value in column "metric_group" of relation "generic_metrics"', 'B33: no group in GENERIC', false);
SELECT lives_ok($$INSERT INTO metrics (trial_id, metrics, partition_type) VALUES (1, '{"a": 1}', 'PROFILING'), (1, '{"a": 1}', 'PROFILING')$$,
    'B33: PROFILING takes rows without group, without batches, and duplicates');
SELECT helper.refuses($$INSERT INTO metrics (trial_id, total_batches, metric_group) VALUES (1, 5, 'x')$$, '23505',
    'duplicate key value violates unique constraint "generic_metrics_trial_id_total_batches_run_id_custom_type_uniqu"',
    'B33: a duplicate key', false);
UPDATE metrics SET archived = true WHERE metric_group = 'x';
SELECT helper.refuses($$INSERT INTO metrics (trial_id, total_batches, metric_group) VALUES (1, 5, 'x')$$, '23505',
    'duplicate key value violates unique constraint', 'B33: also when the other row is archived', false);
SELECT lives_ok($$INSERT INTO metrics (trial_id, total_batches, metric_group) VALUES (1, 5, 'x') ON CONFLICT DO NOTHING$$,
    'B33: ON CONFLICT DO NOTHING works on the parent');
-- The foreign key is seen at the end of the statement.
SELECT helper.refuses($$INSERT INTO metrics (trial_id, total_batches, metric_group) VALUES (77, 5, 'x')$$, '23503',
    'insert or update on table "generic_metrics" violates foreign key constraint "generic_metrics_trial_id_fkey"',
    'B33: an unknown trial', false);
SELECT lives_ok($$INSERT INTO metrics (trial_id, total_batches, metric_group) VALUES (1, 6, 'cpu')$$,
    'B33: the schema lets group cpu into GENERIC; only metrics_report() routes it');

-- Pruning.
CREATE FUNCTION helper.scanned(query text) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line ~ ' on ' THEN
            RETURN NEXT substring(line FROM ' on (\w+)');
        END IF;
    END LOOP;
END $$;
SELECT is((SELECT array_agg(DISTINCT scanned) FROM helper.scanned(
        $$select * from metrics where partition_type='PROFILING'$$) scanned),
    '{system_metrics}', 'B36: partition_type = PROFILING plans touch system_metrics only');
SELECT is((SELECT array_agg(DISTINCT scanned) FROM helper.scanned(
        $$SELECT * FROM metrics WHERE partition_type IN ('TRAINING', 'GENERIC')$$) scanned),
    '{generic_metrics,raw_steps}', 'B36: and two keys two partitions');

-- Ids come from one sequence, whatever the partition.
SELECT is((SELECT count(*) = count(DISTINCT id) FROM metrics), true, 'ids are unique over the partitions');

SELECT * FROM finish();
ROLLBACK;
