"""E-mails to people, through an SMTP relay."""
