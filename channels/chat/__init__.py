"""Messages to rooms of chats, through their incoming webhooks."""
