"""One JSON schema per event type: what a listener may rely on."""
