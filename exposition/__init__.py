"""What both programs tell Prometheus and OpenTelemetry: metrics as declared and served, contexts of traces.
It knows none of our packages."""
