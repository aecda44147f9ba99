"""Programs that answer hooks: handlers, their registration, and the channels that serve them."""
