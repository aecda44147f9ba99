"""Mode keystone, against a real one."""
