-- The columns of the view :view as Superset's datasets list them, in YAML.
-- A JSON string is one in YAML, too.

SELECT format('- column_name: %s', a.attname) || format(E'\n  verbose_name: %s', to_json(
		upper(left(a.attname, 1)) || regexp_replace(replace(substr(a.attname, 2), '_', ' '), ' ms$', ' (ms)')))
	|| format(E'\n  type: %s', upper(format_type(a.atttypid, a.atttypmod)))
	|| format(E'\n  is_dttm: %s', to_json(a.atttypid = 'timestamptz'::regtype))
	|| format(E'\n  description: %s', to_json(col_description(a.attrelid, a.attnum)))
FROM pg_attribute a
WHERE a.attrelid = format('metrics_bi.%I', :'view')::regclass AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
