"""Regular expressions with the meaning of Python's `re` and a bounded cost."""
