"""Sessions in the words of OpenTelemetry: spans, the conventions for generative AI, and the JSON of its protocol."""
