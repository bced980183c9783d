"""What agents do while they do it: their hooks become turns of their sessions here. Quick, silent, never in the way."""
