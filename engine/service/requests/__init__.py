"""From a request to everything that a change will store: parsing, checks, definition."""
