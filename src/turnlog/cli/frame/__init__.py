"""What every command stands in: arguments, options, exit codes, completion, progress."""
