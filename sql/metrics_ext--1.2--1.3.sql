\echo Use "ALTER EXTENSION metrics_ext UPDATE TO '1.3'" to load this file. \quit

SET LOCAL search_path TO pg_catalog, pg_temp;

SELECT @extschema@.metrics_upgrade_store();
