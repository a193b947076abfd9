# B34 under load: ten sessions, 10,000 mixed reports on one trial. No deadlock,
# no update lost: the trial is what a recompute makes of its rows, and every
# report that was committed is in them.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('concurrency');
$node->init;
$node->append_conf('postgresql.conf', 'deadlock_timeout = 100ms');
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION metrics_ext;
SELECT metrics_create_store();
SELECT metrics_register_trial(1, 0, 1, 'loss');
SELECT metrics_register_trial(2, 0, 1, 'loss');

-- What sessions were told has been committed, and what was refused.
CREATE TABLE told (trial integer, run integer, metric_group text, steps integer, key text);
CREATE TABLE refused (state text);

-- One move of a session on a trial. Values follow from group, steps and run, so
-- that what several sessions send of the same batches is equal, unless a
-- conflict is wanted.
CREATE FUNCTION move(client integer, trial integer, kind integer, pick integer, step integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    g text := (ARRAY['training', 'validation', 'inference', 'other'])[1 + pick % 4];
    run integer := (SELECT run_id FROM metrics.trials WHERE id = trial);
    document jsonb := jsonb_build_object('loss', step * 0.25 + run, 'c' || client, step, 'any', step);
BEGIN
    IF kind < 60 THEN
        PERFORM metrics_report(trial, g, document, step, run);
        INSERT INTO told VALUES (trial, run, g, step, 'c' || client);
    ELSIF kind < 70 THEN
        PERFORM metrics_report(trial, 'cpu', document, step, run);
        INSERT INTO told VALUES (trial, NULL, 'cpu', NULL, 'c' || client);
    ELSIF kind < 85 THEN
        PERFORM metrics_report_batch((SELECT jsonb_agg(jsonb_build_object('trial_id', trial, 'trial_run_id', run, 'metric_group', b,
            'metrics', document, 'steps_completed', step)) FROM unnest(ARRAY['inference', 'training', 'gpu']) b));
        INSERT INTO told VALUES (trial, run, 'inference', step, 'c' || client), (trial, run, 'training', step, 'c' || client);
    ELSIF kind < 95 THEN
        PERFORM metrics_report(trial, g, '{"any": "conflict"}', step, run);
    ELSIF kind < 97 THEN
        -- A later run, from somewhere in the upper half.
        PERFORM metrics_register_trial(trial, run + 1);
        PERFORM metrics_report(trial, g, document || jsonb_build_object('loss', step * 0.25 + run + 1), 400 + step % 100, run + 1);
    ELSE
        -- A report that is taken back.
        BEGIN
            PERFORM metrics_report(trial, g, document, step, run);
            RAISE SQLSTATE 'ZZZZZ';
        EXCEPTION WHEN SQLSTATE 'ZZZZZ' THEN NULL;
        END;
    END IF;
EXCEPTION
    -- A conflict, or a run that another session has ended meanwhile.
    WHEN unique_violation OR invalid_parameter_value THEN
        INSERT INTO refused VALUES (SQLSTATE);
END $$;
SQL

# Runs only go up on trial 1; on trial 2 there is one run, and every report
# has to be found again.
$node->pgbench(
	'--no-vacuum --client=10 --jobs=2 --transactions=1000 --random-seed=2024 --protocol=prepared',
	0,
	[qr{processed: 10000/10000}],
	[qr{^}],
	'B34: 10 sessions, 10,000 mixed reports on one trial, no deadlock',
	{
		'002_mixed' => q{
			\set kind random(0, 99)
			\set pick random(0, 1000)
			\set step random(0, 499)
			SELECT move(:client_id, 1, :kind, :pick, :step);
		}
	});
$node->pgbench(
	'--no-vacuum --client=10 --jobs=2 --transactions=200 --random-seed=7 --protocol=prepared',
	0,
	[qr{processed: 2000/2000}],
	[qr{^}],
	'B34: and 2,000 of a single run',
	{
		'002_single' => q{
			\set kind random(0, 89)
			\set pick random(0, 1000)
			\set step random(0, 99)
			SELECT move(:client_id, 2, :kind, :pick, :step);
		}
	});

is($node->safe_psql('postgres', 'SELECT state, count(*) > 0 FROM refused GROUP BY state ORDER BY state'),
	"22023|t\n23505|t", 'conflicts and ended runs were refused, and nothing else');
unlike(slurp_file($node->logfile), qr/deadlock detected/, 'no deadlock in the log');

# Lost reports would be missing in the rows.
is($node->safe_psql('postgres', <<'SQL'), '0', 'B34: every report that was committed is in a row');
SELECT count(*) FROM told t
WHERE t.metric_group <> 'cpu' AND NOT EXISTS (
    SELECT 1 FROM metrics.metrics m
    WHERE m.trial_id = t.trial AND m.trial_run_id = t.run AND m.metric_group = t.metric_group AND m.total_batches = t.steps
      AND m.metrics -> (CASE t.metric_group WHEN 'validation' THEN 'validation_metrics' ELSE 'avg_metrics' END) ? t.key)
SQL
is($node->safe_psql('postgres', "SELECT (SELECT count(*) FROM told WHERE metric_group = 'cpu') - (SELECT count(*) FROM metrics.metrics WHERE metric_group = 'cpu')"),
	'0', 'and every profiling report is one');
is($node->safe_psql('postgres', <<'SQL'), '0', 'B34: of a group and its batches one row is live');
SELECT count(*) FROM (
    SELECT 1 FROM metrics.metrics WHERE NOT archived AND partition_type <> 'PROFILING'
    GROUP BY trial_id, metric_group, total_batches HAVING count(*) > 1) d
SQL
is($node->safe_psql('postgres', 'SELECT count(*) > 100 FROM metrics.metrics WHERE archived'), 't', 'there were rollbacks');

# Lost updates would be missing in the summary: counted here without the
# extension, then by it.
is($node->safe_psql('postgres', <<'SQL'), '', 'B34: the counts and sums of the summary are those of the rows');
SELECT t.id, g.key, e.key, e.value, w.count, w.sum
FROM metrics.trials t, jsonb_each(t.summary_metrics) g, jsonb_each(g.value) e,
LATERAL (
    SELECT count(*) AS count, sum(CASE WHEN jsonb_typeof(v -> e.key) = 'number' THEN (v ->> e.key)::numeric END) AS sum
    FROM metrics.metrics m, LATERAL (SELECT m.metrics -> (CASE g.key WHEN 'validation_metrics' THEN g.key ELSE 'avg_metrics' END)) d(v)
    WHERE m.trial_id = t.id AND NOT m.archived AND m.partition_type <> 'PROFILING' AND v ? e.key
      AND m.metric_group = CASE g.key WHEN 'avg_metrics' THEN 'training' WHEN 'validation_metrics' THEN 'validation' ELSE g.key END) w
WHERE e.value ->> 'type' = 'number'
  AND ((e.value ->> 'count')::bigint, (e.value ->> 'sum')::numeric) IS DISTINCT FROM (w.count, w.sum)
SQL
$node->safe_psql('postgres', "CREATE TABLE before AS SELECT id, to_jsonb(t) - 'summary_metrics_timestamp' AS row FROM metrics.trials t");
is($node->safe_psql('postgres', 'SELECT count(*) FROM metrics.trials t WHERE summary_metrics IS DISTINCT FROM metrics_recompute_summary(id)'),
	'0', 'B34: the summary equals a recompute');
is($node->safe_psql('postgres', "SELECT count(*) FROM metrics.trials t JOIN before b USING (id) WHERE to_jsonb(t) - 'summary_metrics_timestamp' <> b.row"),
	'0', 'and so do batches, latest and best validation');

$node->stop;
done_testing();
