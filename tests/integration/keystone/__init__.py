"""Mode keystone, against a real Keystone server."""
