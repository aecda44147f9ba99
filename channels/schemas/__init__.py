"""JSON schemas of the event types, and the AsyncAPI document."""
