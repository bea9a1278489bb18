-- Functions of Spark that have other names in DuckDB. With these macros DuckDB runs the questions unchanged.
CREATE OR REPLACE TEMP MACRO unix_millis(instant) AS epoch_ms(instant);
CREATE OR REPLACE TEMP MACRO timestamp_millis(millis) AS make_timestamp(1000 * millis);
CREATE OR REPLACE TEMP MACRO explode(items) AS unnest(items);
CREATE OR REPLACE TEMP MACRO size(items) AS len(items);
CREATE OR REPLACE TEMP MACRO array_join(items, separator) AS array_to_string(items, separator);
CREATE OR REPLACE TEMP MACRO get_json_object(document, path) AS json_extract_string(document, path);
