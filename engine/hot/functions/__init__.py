"""Functions of HOT and CFN that work on values alone, and the budget of their cost."""
