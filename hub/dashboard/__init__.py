"""The dashboard: the files of its page, and what they are checked with. hub/api serves them."""
