"""One file per agent: where its hooks are set, what they are called, and what each means."""
