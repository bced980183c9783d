"""The thread of one log: what is known of it, and how it grows."""
