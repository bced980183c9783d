"""What a model is shown: how large it is, and what a provider puts in its place."""
