"""Software configs and deployments."""
