"""What fills the terminal: one file per screen. Its keys are its `BINDINGS`, and `?` lists them."""
