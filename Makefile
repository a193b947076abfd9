EXTENSION = metrics_ext
MODULE_big = metrics_ext
PGFILEDESC = "metrics_ext - application metrics in PostgreSQL"

OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c src/*/*.c)))
DATA = $(wildcard sql/metrics_ext--*.sql)

REGRESS = $(notdir $(basename $(sort $(wildcard test/sql/*.sql))))
REGRESS_OPTS = --inputdir=test --outputdir=test/output
ISOLATION = $(notdir $(basename $(sort $(wildcard test/isolation/specs/*.spec))))
ISOLATION_OPTS = --inputdir=test/isolation --outputdir=test/isolation/output
TAP_TESTS = 1
PROVE_TESTS = test/t/*.pl test/upgrade/*.pl

EXTRA_CLEAN = test/output test/isolation/output tmp_check log

PG_CONFIG ?= pg_config

# The server's headers are not ours to keep free of warnings.
PG_CPPFLAGS = -isystem $(shell $(PG_CONFIG) --includedir-server) -I$(CURDIR)/src
PG_CFLAGS = -Wextra -Wno-declaration-after-statement $(METRICS_CFLAGS)

# What gcc gave PostgreSQL and clang does not know: flags and gnu_printf.
PG_CFLAGS += $(if $(findstring clang,$(CC)),-Wno-unknown-warning-option -Wno-ignored-optimization-argument -Wno-ignored-attributes)

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

$(OBJS): $(wildcard src/*.h src/*/*.h)

# Loops over batches of values and of counts, as in PostgreSQL's checksums.
src/percentile/sketch.o src/percentile/sketch_codec.o: override CFLAGS += $(CFLAGS_UNROLL_LOOPS) $(CFLAGS_VECTORIZE)

# Results that are the same on every machine: no fused multiply-add.
src/report/change_detection.o src/report/comparison.o: override CFLAGS += -ffp-contract=off

# The regression drivers do not make their own output folders.
installcheck: | test/output test/isolation/output
test/output test/isolation/output:
	mkdir -p $@
