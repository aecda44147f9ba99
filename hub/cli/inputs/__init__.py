"""What commands send: files, templates and request bodies."""
