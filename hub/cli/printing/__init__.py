"""What commands print: formats, tables and lines. No requests."""
