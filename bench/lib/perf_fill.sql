-- The same measurements twice: in the store, and in a table with Perfherder's
-- columns and indexes. Expects :pushes.
SELECT metrics_create_store();
SELECT metrics_add_repository('bench');
SET search_path = metrics, public;
INSERT INTO performance_platform (name) SELECT 'platform' || i FROM generate_series(1, 40) i;
INSERT INTO performance_option_collection (hash, options) VALUES (repeat('0', 40), '{opt}');
INSERT INTO performance_signature (repository, framework_id, platform_id, option_collection_id, suite, test, signature_hash)
SELECT 'bench', 1, p, 1, 'suite', 't' || t, md5(p || ' ' || t) || '00000000' FROM generate_series(1, 40) p, generate_series(1, 50) t ORDER BY p, t;
INSERT INTO performance_activity SELECT id, '2026-01-01 00:00+00' FROM performance_signature;
INSERT INTO performance_push (repository, revision, push_time)
SELECT 'bench', 'r' || i, '2023-01-01 00:00+00'::timestamptz + i * interval '1095 days' / :pushes FROM generate_series(1, :pushes) i;
-- The jobs of a push end in any order.
INSERT INTO performance_run (repository, job_id, push_id, tier, machine, submit_time, first_timestamp, last_timestamp)
SELECT repository, 1000000000 + row_number() OVER (ORDER BY p.id, hashint4(j)), p.id, 1, 'm' || j, push_time, push_time, push_time
FROM performance_push p, generate_series(1, 40) j ORDER BY p.id, hashint4(j);

CREATE TABLE upstream_datum (
    id bigserial PRIMARY KEY,
    repository_id integer NOT NULL,
    signature_id integer NOT NULL,
    value float8 NOT NULL,
    push_timestamp timestamptz NOT NULL,
    application_version varchar(50),
    job_id bigint,
    push_id integer NOT NULL,
    os_name varchar(100),
    platform_version varchar(100),
    UNIQUE (repository_id, job_id, push_id, push_timestamp, signature_id)
);
CREATE INDEX ON upstream_datum (repository_id, signature_id, push_timestamp);
CREATE INDEX ON upstream_datum (repository_id, signature_id, push_id);
CREATE INDEX ON upstream_datum (repository_id);
CREATE INDEX ON upstream_datum (signature_id);
CREATE INDEX ON upstream_datum (push_id);
CREATE INDEX ON upstream_datum (job_id);
CREATE INDEX ON upstream_datum (push_timestamp);
CREATE TABLE upstream_replicate (
    id bigserial PRIMARY KEY,
    performance_datum_id bigint NOT NULL REFERENCES upstream_datum (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    value float8 NOT NULL
);
CREATE INDEX ON upstream_replicate (performance_datum_id);
CREATE TABLE upstream_signature (
    id serial PRIMARY KEY,
    repository_id integer NOT NULL,
    framework_id integer NOT NULL,
    application varchar(10) NOT NULL,
    signature_hash varchar(40) NOT NULL,
    suite varchar(80) NOT NULL,
    test varchar(80) NOT NULL,
    platform_id integer NOT NULL,
    option_collection_id integer NOT NULL,
    extra_options varchar(422) NOT NULL,
    tags varchar(360) NOT NULL,
    lower_is_better boolean NOT NULL,
    has_subtests boolean NOT NULL,
    measurement_unit varchar(50),
    last_updated timestamptz NOT NULL,
    UNIQUE (repository_id, suite, test, framework_id, platform_id, option_collection_id, extra_options, last_updated, application),
    UNIQUE (repository_id, framework_id, application, signature_hash)
);
CREATE INDEX ON upstream_signature (repository_id);
CREATE INDEX ON upstream_signature (framework_id);
CREATE INDEX ON upstream_signature (platform_id);
CREATE INDEX ON upstream_signature (option_collection_id);
CREATE INDEX ON upstream_signature (last_updated);
INSERT INTO upstream_signature (repository_id, framework_id, application, signature_hash, suite, test, platform_id, option_collection_id, extra_options,
    tags, lower_is_better, has_subtests, measurement_unit, last_updated)
SELECT 1, 1, '', CASE WHEN id <= 51 THEN lpad((id - 1)::text, 40, '0') ELSE signature_hash END, suite, test, platform_id, 1, '', '', true, false, 'ms', '2023-01-01 00:00+00' FROM performance_signature ORDER BY id;

ALTER TABLE upstream_datum ADD FOREIGN KEY (signature_id) REFERENCES upstream_signature DEFERRABLE INITIALLY DEFERRED,
    ADD FOREIGN KEY (push_id) REFERENCES performance_push DEFERRABLE INITIALLY DEFERRED;

SET session_replication_role = replica;
INSERT INTO performance_datum (repository, signature_id, run_id, push_id, push_timestamp, value)
SELECT 'bench', (substr(machine, 2)::integer - 1) * 50 + t, r.id, push_id, first_timestamp, 100 * t + random() FROM performance_run r, generate_series(1, 50) t ORDER BY r.id, t;
INSERT INTO upstream_datum (repository_id, signature_id, value, push_timestamp, application_version, job_id, push_id)
SELECT 1, signature_id, value, push_timestamp, '', job_id, d.push_id FROM performance_datum d JOIN performance_run r ON r.id = run_id ORDER BY r.id, signature_id;
VACUUM ANALYZE;
