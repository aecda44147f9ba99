"""The types of errors, for the reference and for the pages of the server."""
