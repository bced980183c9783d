"""What a model is shown: how large it is, which messages are prompts, and what a provider puts in its place."""
