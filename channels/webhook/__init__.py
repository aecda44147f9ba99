"""The webhook channel: signed POSTs to addresses that were judged."""
