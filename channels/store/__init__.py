"""Every statement of the channels, a file per moment."""
