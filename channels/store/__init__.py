"""All SQL statements of the channels."""
