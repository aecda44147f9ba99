"""The commands, by the words that call them, and what only commands use."""
