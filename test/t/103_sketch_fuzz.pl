# The sketch's parsers on mutated forms: in a program of their own under the
# address and undefined-behaviour sanitizers, and fewer of them in the server.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $fuzz = dirname(abs_path(__FILE__)) . '/../fuzz';
my $out = abs_path(PostgreSQL::Test::Utils::tempdir());
my ($stdout, $stderr) = ('', '');

SKIP:
{
	append_to_file("$out/probe.c", "int main(void) { return 0; }\n");
	skip 'no compiler with sanitizers', 1
	  if system("cc -fsanitize=address,undefined $out/probe.c -o $out/probe 2>/dev/null && $out/probe") != 0;
	my $status = IPC::Run::run([ 'make', '-s', '-C', $fuzz, "OUT=$out", 'mutations' ], '>', \$stdout, '2>', \$stderr);
	like($stdout, qr/^100000 mutations each/, 'each of 100,000 mutated forms is refused or a valid sketch') or diag($stderr);
}

SKIP:
{
	my $seconds = $ENV{CI} ? 60 : 10;

	append_to_file("$out/probe_fuzzer.c", "int LLVMFuzzerTestOneInput(const char *data, long size) { return data == 0 && size < 0; }\n");
	skip 'no clang with libFuzzer', 1
	  if system("clang -fsanitize=fuzzer,address,undefined $out/probe_fuzzer.c -o $out/probe_fuzzer 2>/dev/null") != 0;
	ok(IPC::Run::run([ 'make', '-s', '-C', $fuzz, "OUT=$out", "SECONDS=$seconds", 'fuzz' ], '>', \$stdout, '2>', \$stderr),
		'and so is what libFuzzer finds') or diag($stderr);
}

my $node = PostgreSQL::Test::Cluster->new('sketch_fuzz');
$node->init;
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION metrics_ext;
CREATE TABLE outcomes (form text, state text, problem text);
CREATE TABLE forms AS
SELECT metrics_sketch(v) AS sketch FROM unnest('{-2, -1, 0, 1, 2}'::float8[]) v
UNION ALL SELECT metrics_sketch(v) FROM unnest('{NaN, Infinity, -Infinity, 1e-320, 1e308}'::float8[]) v
UNION ALL SELECT metrics_sketch(v) FROM generate_series(1, 300) v;

-- mutated forms go through the input functions; what is accepted must go back out
SELECT setseed(0.5);
DO $$
DECLARE
	original metrics_sketch;
	result metrics_sketch;
	bytes bytea;
	txt text;
	at int;
BEGIN
	FOR original IN SELECT sketch FROM forms, generate_series(1, 2000)
	LOOP
		bytes := original::bytea;
		FOR i IN 0 .. floor(random() * 3)::int LOOP
			at := floor(random() * length(bytes))::int;
			bytes := CASE floor(random() * 3)
				WHEN 0 THEN set_byte(bytes, at, floor(random() * 256)::int)
				WHEN 1 THEN substr(bytes, 1, at) || substr(bytes, at + 2)
				ELSE substr(bytes, 1, at + 1) || substr(bytes, at + 1) END;
		END LOOP;
		BEGIN
			result := bytes::metrics_sketch;
			INSERT INTO outcomes VALUES ('bytea', '00000', CASE WHEN result::bytea <> bytes OR (result::text::metrics_sketch)::bytea <> bytes
				OR metrics_count(result + result) <> 2 * metrics_count(result) THEN bytes::text END);
		EXCEPTION WHEN OTHERS THEN
			INSERT INTO outcomes VALUES ('bytea', SQLSTATE, CASE WHEN SQLSTATE NOT IN ('22P03', '22003') THEN bytes::text END);
		END;
		txt := original::text;
		at := 1 + floor(random() * length(txt))::int;
		txt := overlay(txt PLACING substr('0123456789-+.eE[]{}," ', 1 + floor(random() * 22)::int, 1) FROM at FOR floor(random() * 2)::int);
		BEGIN
			result := txt::metrics_sketch;
			INSERT INTO outcomes VALUES ('text', '00000', CASE WHEN (result::text::metrics_sketch)::bytea <> result::bytea THEN txt END);
		EXCEPTION WHEN OTHERS THEN
			INSERT INTO outcomes VALUES ('text', SQLSTATE, CASE WHEN SQLSTATE <> '22P02' THEN txt END);
		END;
	END LOOP;
END $$;
SQL
is($node->safe_psql('postgres', 'SELECT form, count(*) FROM outcomes GROUP BY form ORDER BY form'), "bytea|6000\ntext|6000", 'mutations in the server');
is($node->safe_psql('postgres', 'SELECT form, state, problem FROM outcomes WHERE problem IS NOT NULL LIMIT 5'), '', 'are refused with the right SQLSTATE or valid');
is($node->safe_psql('postgres', "SELECT form FROM outcomes WHERE state = '00000' GROUP BY form ORDER BY form"), "bytea\ntext", 'some of each are valid');
$node->stop;
done_testing();
