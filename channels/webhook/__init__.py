"""The webhook channel: signed POSTs to allowed addresses."""
