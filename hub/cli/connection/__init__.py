"""To which server and project commands send requests."""
