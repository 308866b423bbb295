"""Metrics for Prometheus, of both programs: what is declared, and how it is served. It knows none of ours."""
