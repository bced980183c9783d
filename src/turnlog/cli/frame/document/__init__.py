"""The JSON documents of `--json`: their fields, what is asked of them, and how they are written."""
