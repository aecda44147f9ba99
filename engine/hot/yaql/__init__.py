"""yaql expressions: parsing and evaluation with a bounded cost."""
