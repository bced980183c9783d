"""Sessions for what watches services: as OpenTelemetry's spans, and to a collector."""
