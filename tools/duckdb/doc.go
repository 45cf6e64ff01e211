// Package duckdb has no code, only the test that executes the SQL of
// docs/latency.md by DuckDB.
package duckdb
