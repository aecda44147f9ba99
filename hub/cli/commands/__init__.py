"""The commands, by the words that call them."""
