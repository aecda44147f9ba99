"""Settings: their types, sources and checks."""
